"""Listens to guests from outside: a guest does not know for how long it stood still, because its clock may stand still too.

Guests send datagrams to the network's DHCP server, in whose namespace the observer listens. It also watches what leaves the
guests at their hosts, so that it can say who was silent: the guest or the network.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from types import TracebackType

from causeway.errors import GuestFailed
from causeway.virt.lab.taps import TapWatch

PORT = 9999


@dataclass(frozen=True)
class Silence:
    """``seconds``: how long. ``sent``: host -> datagrams that left the guest there meanwhile; None: nobody watched."""

    seconds: float
    sent: dict[str, int] | None = None

    def __str__(self) -> str:
        said = f"silent for {self.seconds:.2f} s at most"
        if self.sent is None:
            return said
        # The one that ended the silence was on its way.
        if sum(self.sent.values()) <= 1:
            return f"{said}: the guest sent nothing"
        where = ", ".join(f"{count} datagrams at {host}" for host, count in sorted(self.sent.items()) if count)
        return f"{said}: the network lost what the guest sent ({where})"


class Observer:
    """Records when guests send something to the port, as long as the context lasts. ``hosts``: host -> its namespace."""

    def __init__(self, namespace: str, hosts: dict[str, str], port: int = PORT) -> None:
        self._namespace = namespace
        self._taps = {host: TapWatch(each, port) for host, each in hosts.items()}
        self._running = ExitStack()
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
        for tap in self._taps.values():
            self._running.enter_context(tap)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def wait_for(self, address: str, after: float, timeout: float) -> None:
        """Waits until a guest is heard after a moment (of `time.monotonic`). Raises `GuestFailed` after ``timeout`` seconds."""
        with self._news:
            heard = self._news.wait_for(lambda: any(at > after for at in self._heard.get(address, [])[-1:]), timeout)
        if not heard:
            now = time.monotonic()
            raise GuestFailed(
                f"The guest at {address} was not heard: {self._silence(address, max(after, now - timeout), now)}."
            )

    def silence(self, address: str, since: float) -> Silence:
        """The longest silence of a guest since a moment (of `time.monotonic`). What lies before does not count."""
        with self._news:
            heard = list(self._heard.get(address, []))
        return self._silence(address, *longest_silence(heard, since))

    def sent(self, address: str, began: float, ended: float) -> dict[str, int] | None:
        """Host -> datagrams that left the guest there between two moments; None if nobody watches hosts."""
        watched = {host: each for host, each in self._taps.items() if each.is_watching}
        return {host: each.sent(address, began, ended) for host, each in watched.items()} if watched else None

    def _silence(self, address: str, began: float, ended: float) -> Silence:
        return Silence(ended - began, self.sent(address, began, ended))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, address, *_text = line.split(maxsplit=2)
            with self._news:
                self._heard.setdefault(address, []).append(float(at))
                self._news.notify_all()


def longest_silence(heard: list[float], since: float) -> tuple[float, float]:
    """Beginning and end of the longest silence between moments in order. What lies before ``since`` does not count."""
    silences = [(max(before, since), after) for before, after in pairwise(heard) if after > since]
    return max(silences, key=lambda each: each[1] - each[0], default=(since, since))
