"""Names of files that another host chose: a compromised one must not reach files of ours with them."""

from __future__ import annotations

from causeway import errors
from causeway.model.file_names import is_file_name


def checked(name: str) -> str:
    """Returns ``name``. Raises DiskTransferFailed unless it names a file in the folder to which it is appended."""
    if not is_file_name(name):
        raise errors.DiskTransferFailed(
            "The host of the server's disks named a file that can't be one of them. Nothing was read or written.",
            details=f"name {name[:300]!r}",
        )
    return name
