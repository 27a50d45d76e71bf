"""Pages as they change: server-sent events, each with the whole main part of a page that is another one than before."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

# Seconds: between two looks, and after which a stream ends, so that a client that is gone keeps no thread. Browsers ask again.
INTERVAL, LONGEST = 2.0, 55.0
RETRY_MS = 500


def stream(make: Callable[[], str], stopping: threading.Event) -> Iterator[bytes]:
    """``make``: the page's main part as it is now. May raise what asking the API raises; the stream says so."""
    yield f"retry: {RETRY_MS}\n\n".encode()
    sent, end = None, time.monotonic() + LONGEST
    while time.monotonic() < end:
        made = make()
        if made != sent:
            # One line, whatever is in it.
            yield f"data: {json.dumps(made)}\n\n".encode()
            sent = made
        else:
            # A comment: who has gone is noticed by writing.
            yield b":\n\n"
        if stopping.wait(INTERVAL):
            return
