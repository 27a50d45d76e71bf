"""Bounds the reading of bodies: bytes must keep coming, or the client is disconnected."""

from __future__ import annotations

import time
from typing import Any

# Seconds without a byte, and the bytes a second that must come on average after so many seconds of waiting in all.
PATIENCE = 60.0
LEAST_RATE = 4096


def stream_of(request: Any) -> Any:
    """The body of a Falcon request. Falcon itself takes one without a length for empty, also if it comes in chunks."""
    is_chunked = "chunked" in request.env.get("HTTP_TRANSFER_ENCODING", "").lower()
    return request.stream if is_chunked and request.content_length is None else request.bounded_stream


class Pace:
    """Measures the pace of one request. Only time spent waiting counts, not what the reader does between two reads."""

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
            # cheroot recognizes a timeout by these words.
            raise TimeoutError("timed out")
