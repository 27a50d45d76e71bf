"""Large pieces of answers go to the socket as they are: nothing is lost or changed, however slowly they are taken."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest

from causeway.http import server

# About what is copied, and around it.
SIZES = (1, server._LARGE - 1, server._LARGE, 3 << 20, 33, 1 << 20)
PIECES = [random.Random(size).randbytes(size) for size in SIZES]


@contextmanager
def serving(*, is_long_known: bool) -> Iterator[int]:
    """``is_long_known``: the answer's length stands at its beginning."""

    def answer(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", str(sum(SIZES)))] if is_long_known else [])
        return iter(PIECES)

    made = server.make_server("127.0.0.1", 0, answer, threads=2, name="test")
    made.shutdown_timeout = 1
    thread = threading.Thread(target=made.serve)
    thread.start()
    try:
        yield made.bind_addr[1]
    finally:
        made.stop()
        thread.join()


@pytest.mark.parametrize("is_long_known", [True, False])
def test_every_byte_arrives_in_its_place(is_long_known: bool) -> None:
    with serving(is_long_known=is_long_known) as port:
        client = HTTPConnection("127.0.0.1", port, timeout=30)
        for _again in range(2):
            client.request("GET", "/")
            answer = client.getresponse()
            taken = []
            # More than sockets hold for one another: the server's takes a part at a time.
            while piece := answer.read(100_000):
                taken.append(piece)
            assert b"".join(taken) == b"".join(PIECES)
        client.close()
