"""However a benchmark ends, nothing of it is left: no process, no temporary folder."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tests.process_trees import with_children

# prctl(2): who loses its parent becomes a child of ours.
_SET_CHILD_SUBREAPER = 36
# Seconds that processes have between being asked to end and being killed.
_PATIENCE = 5.0


class CutShort(BaseException):
    """A signal came, or time is up. ``status``: what the process is to end with."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


@contextmanager
def nothing_left(prefix: str, seconds: float | None = None) -> Iterator[Path]:
    """A folder in which everything temporary is made, until the end.

    SIGINT, SIGTERM and the end of ``seconds`` raise CutShort in the block, once; what comes later changes nothing. After the
    block whatever descends from this process is ended, also what nobody knows of because the signal came between its
    start and the note of it.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    # Database servers have accounts of their own.
    folder.chmod(0o755)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    is_over = False

    def cut(number: int, _frame: FrameType | None) -> None:
        nonlocal is_over
        if not is_over:
            is_over = True
            if number == signal.SIGALRM:
                raise CutShort("time is up", 1)
            raise CutShort(signal.Signals(number).name, 128 + number)

    handlers = {number: signal.signal(number, cut) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_REAL, seconds or 0.0)
    try:
        yield folder
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        end_descendants()
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def end_descendants() -> None:
    """Asks all that descend from this process to end, and then kills them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + _PATIENCE
        asked = set[int]()
        while (left := _living(os.getpid())) and time.monotonic() < end:
            for pid in set(left) - asked:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            asked |= set(left)
            # Nothing tells when somebody else's child ends.
            time.sleep(0.05)


def _living(pid: int) -> list[int]:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return with_children(pid)[1:]
