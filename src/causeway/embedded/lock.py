"""Lets one process at a time use a state directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from causeway import errors


class StateDirLock:
    """Held until `release`, or until the process ends in any way."""

    def __init__(self, state_dir: Path) -> None:
        """Raises Misconfigured, which names the process that has the directory."""
        path = state_dir / "lock"
        self._file = path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as failure:
            self._file.seek(0)
            owner = self._file.read(32).strip()
            self._file.close()
            who = f"the process {owner}" if owner.isdigit() else "another process"
            raise errors.Misconfigured(
                f"The directory {state_dir} is in use by {who}: stop that cloud, or give another --state-dir."
            ) from failure
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        self._file.close()


__all__ = ["StateDirLock"]
