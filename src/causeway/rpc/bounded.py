"""Limits how long a stopping service waits for oslo.messaging, which can't end listeners and connections without RabbitMQ."""

from __future__ import annotations

import threading
from collections.abc import Callable


def within(seconds: float, name: str, act: Callable[[], None]) -> bool:
    """Calls ``act`` on a thread named ``name``, and waits for it up to ``seconds``. Returns whether it ended in that time.

    An ``act`` that has not ended continues as long as the process lives. Raises the error that ``act`` raised in that time.
    """
    failures: list[Exception] = []

    def run() -> None:
        try:
            act()
        except Exception as failure:  # noqa: BLE001 - the waiting caller raises it again
            failures.append(failure)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return False
    if failures:
        raise failures[0]
    return True
