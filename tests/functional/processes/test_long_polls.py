"""A worker of `causeway api` that has to end answers the requests that wait, and does not wait for their time to be over."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from causeway.cli.web_processes import ApiProcesses
from causeway.conf import new_config
from tests.ports import free_port

PROCESSES = multiprocessing.get_context("spawn")


class Waiting(ApiProcesses):
    """Every request of this API waits for an hour; ``arrived`` counts them."""

    arrived: Any

    def load(self) -> Callable[..., Any]:
        def app(_environ: dict[str, Any], start_response: Any) -> list[bytes]:
            self.arrived.release()
            self._long_polls.wait(lambda: False, 3600)
            start_response("200 OK", [("Content-Length", "0")])
            return []

        return app


def serve(port: int, arrived: Any) -> None:
    api = Waiting(new_config(), (), bind=f"127.0.0.1:{port}", workers=1, threads=8)
    api.arrived = arrived
    api.run()


def ask(port: int) -> int:
    """The status of an answer; asks again until somebody listens."""
    for _attempt in range(150):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=90) as answer:
                return int(answer.status)
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError("nobody listens")


def test_requests_that_wait_are_answered_when_the_worker_ends() -> None:
    port, arrived = free_port(), PROCESSES.Semaphore(0)
    process = PROCESSES.Process(target=serve, args=(port, arrived))
    process.start()
    try:
        with ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(ask, port) for _ in range(2)]
            assert all(arrived.acquire(timeout=40) for _ in answers)
            time.sleep(1)
            assert not any(answer.done() for answer in answers)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGTERM)
            assert [answer.result(80) for answer in answers] == [200, 200]
        process.join(20)
        assert process.exitcode == 0
    finally:
        process.kill()
