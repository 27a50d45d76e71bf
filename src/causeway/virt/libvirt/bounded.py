"""Timeouts for libraries that have none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from causeway.errors import GuestFailed

_T = TypeVar("_T")


def within(seconds: float, what: str, work: Callable[[], _T]) -> _T:
    """What ``work`` returns, or raises. ``what`` completes "The host did not ... within N s".

    Raises `GuestFailed` when the time is over. The work is left to itself then, in a thread that keeps no process alive.
    """
    ended = threading.Event()
    returned: list[_T] = []
    raised: list[Exception] = []

    def run() -> None:
        try:
            returned.append(work())
        except Exception as failure:  # noqa: BLE001 - it is raised where it is waited for
            raised.append(failure)
        finally:
            ended.set()

    threading.Thread(target=run, name=f"within-{seconds:.0f}-s", daemon=True).start()
    if not ended.wait(seconds):
        raise GuestFailed(f"The host did not {what} within {seconds:.0f} s. Look at its logs, then try again.")
    if raised:
        raise raised[0]
    return returned[0]
