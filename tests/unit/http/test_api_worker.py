"""The same of gunicorn with our worker: slow clients keep nobody waiting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit.http.wire import (
    AMBIGUOUS,
    CHUNKED,
    ENDLESS,
    GET,
    SLOW,
    answer,
    ask,
    check_slow_clients_keep_nobody_waiting,
    connect,
)

THREADS = 4
PROGRAM = """
import sys
from gunicorn.app.base import BaseApplication
from causeway.cli.api_worker import Worker
from causeway.http.strict import strict
from tests.unit.http.wire import echo

class Served(BaseApplication):
    def load_config(self):
        for name, value in {"bind": sys.argv[1], "workers": 1, "threads": %d, "worker_class": Worker,
                            "worker_connections": 150, "control_socket_disable": True, "graceful_timeout": 10}.items():
            self.cfg.set(name, value)
    def load(self):
        return strict(echo)

Served().run()
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM % THREADS, f"127.0.0.1:{number}"],
        env=os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}"},
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while True:
        try:
            ask(number, GET)
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < end
    yield number
    process.terminate()
    assert process.wait(60) == 0


@pytest.mark.parametrize("sent", SLOW)
def test_slow_clients_keep_nobody_waiting(port: int, sent: bytes) -> None:
    check_slow_clients_keep_nobody_waiting(port, sent, THREADS)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=" + b"1" * 5000 + b"-\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        *AMBIGUOUS,
    ],
)
def test_what_is_malformed_is_refused(port: int, sent: bytes) -> None:
    assert ask(port, sent).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("sent", ENDLESS)
def test_heads_without_end_are_refused(port: int, sent: bytes) -> None:
    assert ask(port, sent).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("sent", [GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b"GARBAGE\r\n\r\n"])
def test_clients_that_never_close_keep_nobody_waiting(port: int, sent: bytes) -> None:
    """gunicorn would wait two seconds for each of them, and answer the last one when nobody waits for that any more."""
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(port, sent)) for _ in range(60)]
        assert ask(port, GET).startswith(b"HTTP/1.1 200")
        assert all(answer(client) for client in clients)
