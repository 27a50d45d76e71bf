"""Whether a host can write into its own folders, where it makes guests and keeps its records."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

# Bytes: a full disk takes an empty file.
_SIZE = 4096


def why_unwritable(folders: Iterable[Path]) -> str | None:
    """The reason, in one sentence; None: a small file, which has no name, could be written into each."""
    for folder in folders:
        try:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                file.write(bytes(_SIZE))
        except OSError as failure:
            return f"{folder} can't be written: {failure.strerror or failure}"
    return None
