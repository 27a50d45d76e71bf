"""Listens to guests from outside: a guest does not know for how long it stood still, because its clock may stand still too.

Guests send datagrams to the network's DHCP server, in whose namespace the observer listens.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from importlib.resources import files
from itertools import pairwise
from types import TracebackType

from causeway.errors import GuestFailed

PORT = 9999


class Observer:
    """Records when guests send something to the port, as long as the context lasts."""

    def __init__(self, namespace: str, port: int = PORT) -> None:
        self._namespace = namespace
        self._port = port
        self._heard: dict[str, list[float]] = {}
        self._news = threading.Condition()

    def __enter__(self) -> Observer:
        script = files("causeway.virt.lab").joinpath("datagram_listener.py")
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", self._namespace, sys.executable, "-I", str(script), str(self._port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            self._process.wait()
            raise GuestFailed(f"The observer can't listen in namespace {self._namespace}.")
        self._reader = threading.Thread(target=self._read, name="observer", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def wait_for(self, address: str, after: float, timeout: float) -> None:
        """Waits until a guest is heard after a moment (of `time.monotonic`). Raises `GuestFailed` after ``timeout`` seconds."""
        with self._news:
            heard = self._news.wait_for(lambda: any(at > after for at in self._heard.get(address, [])[-1:]), timeout)
        if not heard:
            raise GuestFailed(f"The guest at {address} was not heard for {time.monotonic() - after:.0f} s.")

    def silence(self, address: str, since: float) -> float:
        """The longest silence of a guest since a moment (of `time.monotonic`), in seconds. What lies before does not count."""
        with self._news:
            heard = list(self._heard.get(address, []))
        return longest_silence(heard, since)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, address, *_text = line.split(maxsplit=2)
            with self._news:
                self._heard.setdefault(address, []).append(float(at))
                self._news.notify_all()


def longest_silence(heard: list[float], since: float) -> float:
    """The longest silence between moments in order, in seconds. What lies before ``since`` does not count."""
    return max((after - max(before, since) for before, after in pairwise(heard) if after > since), default=0.0)
