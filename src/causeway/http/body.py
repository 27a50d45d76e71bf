"""Reading a body whose bytes must keep coming: a client that trickles it is disconnected."""

from __future__ import annotations

import time

# Seconds without a byte, and bytes a second that must come on average once that long was waited in all.
PATIENCE = 60.0
LEAST_RATE = 4096


class Pace:
    """Of one request. Only time spent waiting counts: what the reader does between two reads is its own."""

    def __init__(self) -> None:
        self._waited = 0.0
        self._received = 0
        self._began = 0.0

    def before(self) -> None:
        self._began = time.monotonic()

    def after(self, received: int) -> None:
        """Raises TimeoutError if the bytes come too slowly."""
        self._waited += time.monotonic() - self._began
        self._received += received
        if received and self._waited > PATIENCE and self._received < LEAST_RATE * self._waited:
            # The words by which cheroot knows a timeout.
            raise TimeoutError("timed out")
