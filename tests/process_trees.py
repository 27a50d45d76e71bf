"""A process with all that descend from it: servers of others start more of them than their own group has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = 30.0


def with_children(pid: int) -> list[int]:
    """A process and all that descend from it."""
    return [pid, *(one for child in children(pid) for one in with_children(child))]


def signal_all(pid: int, number: signal.Signals) -> None:
    """To the one at the root first, so that it starts no others meanwhile; what has ended gets none.

    After SIGSTOP none of their threads runs any more when this returns.
    """
    signalled = with_children(pid)
    for one in signalled:
        with suppress(ProcessLookupError):
            os.kill(one, number)
    if number == signal.SIGSTOP:
        _until_none(signalled, has_running_threads, "stopped")


def stop(pid: int) -> None:
    """SIGSTOP to one process; none of its threads runs any more when this returns."""
    os.kill(pid, signal.SIGSTOP)
    _until_none([pid], has_running_threads, "stopped")


def kill_all(pid: int) -> None:
    """SIGKILL to the one at the root and its descendants; none of them runs any more when this returns."""
    doomed = with_children(pid)
    for one in doomed:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    _until_none(doomed, _runs, "killed")


def _until_none(pids: list[int], still: Callable[[int], bool], done: str) -> None:
    end = time.monotonic() + PATIENCE
    while any(map(still, pids)):
        assert time.monotonic() < end, f"{done}, and still running: {pids}"
        # Nothing says when somebody else's child ends or stops.
        time.sleep(0.01)


def has_running_threads(pid: int) -> bool:
    """A signal stops the threads of a process one after the other; a zombie has none."""
    with suppress(FileNotFoundError, ProcessLookupError):
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
        return any(stat.rpartition(")")[2].split()[0] not in "TZX" for stat in stats)
    # A thread ended meanwhile, or the process did.
    return Path(f"/proc/{pid}").exists()


def _runs(pid: int) -> bool:
    """A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident(pid: int) -> float:
    """MiB of memory that a process and its descendants have."""
    kib = 0
    for one in with_children(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
            kib += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return kib / 1024


def children(pid: int) -> list[int]:
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found
