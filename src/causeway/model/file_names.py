"""Names of files that come from elsewhere: services, other hosts. A path would lead to files that are not theirs."""

from __future__ import annotations

# Bytes of a name on any file system.
_LONGEST = 255


def is_file_name(name: str) -> bool:
    """Whether ``name``, appended to a folder, names a file in that folder."""
    if "/" in name or "\0" in name or name in ("", ".", ".."):
        return False
    try:
        return len(name.encode()) <= _LONGEST
    except UnicodeEncodeError:
        return False
