"""Limits how long a stopping service waits: oslo.messaging ends listeners and connections only when RabbitMQ can be reached."""

from __future__ import annotations

import threading
from collections.abc import Callable


def within(seconds: float, name: str, act: Callable[[], None]) -> bool:
    """Calls ``act`` on its own thread. Returns whether it ended in time; if not, it continues as long as the process lives.

    Raises what ``act`` raised in time.
    """
    failures: list[Exception] = []

    def run() -> None:
        try:
            act()
        except Exception as failure:  # noqa: BLE001 - it is raised where it is waited for
            failures.append(failure)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return False
    if failures:
        raise failures[0]
    return True
