"""Watches a server through the API many times a second, for states that a command line client would miss."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import openstack

from causeway.cli.demo.guest import GuestReport, last_report

MICROVERSION = "2.96"
INTERVAL = 0.02
TIMEOUT = 240.0


class Timeout(Exception):
    """Something did not happen in time."""


def connect(clouds: Path, cloud: str) -> Any:
    """A connection of openstacksdk to a cloud of a clouds.yaml."""
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(clouds)
    return openstack.connect(cloud=cloud)


def guest_report(compute: Any, server: str, after_boot: int) -> GuestReport:
    """Waits until a guest says that it is ready after more than ``after_boot`` boots. Raises `Timeout`."""
    deadline, pause = time.monotonic() + TIMEOUT, threading.Event()
    while time.monotonic() < deadline:
        answer = compute.post(f"/servers/{server}/action", json={"os-getConsoleOutput": {}}, microversion=MICROVERSION)
        if answer.ok:
            report = last_report(answer.json()["output"])
            if report.ready and report.boot > after_boot:
                return report
        pause.wait(0.25)
    raise Timeout(f"The guest of server {server} did not report on its console within {TIMEOUT:.0f} s.")


class Watch:
    """Follows a server's status in the list of servers, in a thread, until it is one of ``until`` or the move has failed.

    ``statuses`` are those that were seen, in order; ``counts`` how often the server was in a list: it must always be once.
    """

    def __init__(self, compute: Any, server: str, until: set[str], on_change: Callable[[str], None]) -> None:
        self.statuses: list[str] = []
        self.counts: set[int] = set()
        self.polls = 0
        self._compute = compute
        self._server = server
        self._until = until
        self._on_change = on_change
        self._end = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        """Returns when the first status was seen."""
        self._poll()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for the end, unless the command itself failed. Raises `Timeout`."""
        if kind is not None:
            self._end.set()
        self._thread.join(TIMEOUT)
        alive = self._thread.is_alive()
        self._end.set()
        if kind is None and self._failure is not None:
            raise self._failure
        if kind is None and alive:
            raise Timeout(f"Server {self._server} went {' -> '.join(self.statuses)}, and stayed there.")

    def _run(self) -> None:
        try:
            while not self._end.wait(INTERVAL) and not self._ended():
                self._poll()
        except Exception as failure:  # noqa: BLE001  (handed to the thread that waits)
            self._failure = failure

    def _ended(self) -> bool:
        now = self.statuses[-1]
        return now in self._until or now == "ERROR" or (len(self.statuses) > 1 and now == self.statuses[0])

    def _poll(self) -> None:
        answer = self._compute.get("/servers/detail", microversion=MICROVERSION)
        answer.raise_for_status()
        found = [server for server in answer.json()["servers"] if server["id"] == self._server]
        self.polls += 1
        self.counts.add(len(found))
        status = found[0]["status"] if found else ""
        if status and (not self.statuses or self.statuses[-1] != status):
            self.statuses.append(status)
            self._on_change(" -> ".join(self.statuses))
