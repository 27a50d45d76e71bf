"""What leaves the guests of a host, as tcpdump sees it at their taps. It shows which one is silent: a guest or the network."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from types import TracebackType

# "1700000000.123456 tap0a1b2c3d-4e P   IP 192.168.77.9.514 > 192.168.77.1.9999: UDP, length 60"
_LINE = re.compile(r"^(?P<at>\d+\.\d+) tap\S+ +\S+ +IP (?P<address>\d+\.\d+\.\d+\.\d+)\.\d+ > ")
_READY = "listening on"


class TapWatch:
    """Records what the guests in a host's namespace send to a port, as long as the context lasts; nothing without tcpdump."""

    def __init__(self, namespace: str, port: int) -> None:
        self._namespace = namespace
        self._port = port
        self._sent: dict[str, list[float]] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> TapWatch:
        if shutil.which("tcpdump") is None:
            return self
        self._process = process = subprocess.Popen(
            [
                *("ip", "netns", "exec", self._namespace),
                *("tcpdump", "-Z", "root", "-i", "any", "-n", "-l", "-q", "-tt", "--immediate-mode"),
                f"udp dst port {self._port}",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        # tcpdump says so when it has begun; it says nothing and ends if it may not.
        for line in process.stderr:
            if line.startswith(_READY):
                break
        self._reader = threading.Thread(target=self._read, args=(process,), name="tap-watch", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._reader.join()

    @property
    def is_watching(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def sent(self, address: str, began: float, ended: float) -> int:
        """How many datagrams left the guest with this address between two moments (of `time.monotonic`)."""
        with self._lock:
            return sum(1 for at in self._sent.get(address, []) if began < at < ended)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        # tcpdump writes the time of day, and the observer uses another clock.
        offset = time.time() - time.monotonic()
        for line in process.stdout:
            found = _LINE.match(line)
            if found is not None:
                with self._lock:
                    self._sent.setdefault(found["address"], []).append(float(found["at"]) - offset)
