"""Names of files that another host chose: a compromised one must not reach files of ours with them."""

from __future__ import annotations

from causeway import errors

# Bytes of a name on any file system.
_LONGEST = 255


def checked(name: str) -> str:
    """Returns ``name``. Raises DiskTransferFailed unless it names a file in the folder to which it is appended."""
    if "/" in name or "\0" in name or name in ("", ".", "..") or len(name.encode(errors="replace")) > _LONGEST:
        raise errors.DiskTransferFailed(
            "The host of the server's disks named a file that can't be one of them. Nothing was read or written.",
            details=f"name {name[:_LONGEST]!r}",
        )
    return name
