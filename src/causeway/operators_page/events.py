"""Pages as they change: server-sent events, each with the whole main part of a page that has changed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

# Seconds between two checks of the page, and until a stream ends: a lost client must not hold a thread. Browsers reconnect.
INTERVAL, LONGEST = 2.0, 55.0
RETRY_MS = 500


def stream(make: Callable[[], str], stopping: threading.Event) -> Iterator[bytes]:
    """Yields the events of a page until `LONGEST` or ``stopping``. ``make`` returns the page's main part as it is now."""
    yield f"retry: {RETRY_MS}\n\n".encode()
    sent, end = None, time.monotonic() + LONGEST
    while time.monotonic() < end:
        made = make()
        if made != sent:
            # JSON makes it one line.
            yield f"data: {json.dumps(made)}\n\n".encode()
            sent = made
        else:
            # A comment: only writing shows that a client is gone.
            yield b":\n\n"
        if stopping.wait(INTERVAL):
            return
