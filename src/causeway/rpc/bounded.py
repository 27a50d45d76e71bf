"""oslo.messaging ends listeners and connections only when RabbitMQ can be reached; a service that ends does not wait for that."""

from __future__ import annotations

import threading
from collections.abc import Callable


def within(seconds: float, name: str, act: Callable[[], None]) -> bool:
    """Does something on a thread of its own; whether it was done in time. If not it continues, for as long as the process lives.

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
