"""The cloud of the demonstration: ``causeway up`` as a child process."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from causeway.cli.demo.screen import Screen
from causeway.embedded.settings import StateDir
from causeway.virt.lab.commands import process_runs
from causeway.virt.lab.network import PingResult
from causeway.virt.lab.observer import Observer

READY, CONSOLE = "ready: ", "console: "
START_SECONDS, STOP_SECONDS = 180.0, 60.0


class CloudFailed(Exception):
    """`causeway up` did not start."""


class Cloud(Protocol):
    """What the story needs of a cloud of two cells.

    ``state`` has clouds.yaml and the hosts' files. ``real``: guests can be pinged.
    """

    state: StateDir

    @property
    def real(self) -> bool: ...

    @property
    def leaving(self) -> int:
        """How many servers its other cell has room for, when one of them is emptied."""

    def database(self, name: str) -> str:
        """The URL of the database of a cell, or of the API ("api")."""

    def ping(self, network_id: str, address: str) -> PingResult: ...

    def bytes_received(self, host: str) -> int | None:
        """The bytes that a host has received from others so far; None if nobody counts."""

    def observer(self, network_id: str) -> Observer | None:
        """An observer in a network, who hears what guests send to its gateway; None if there can't be one."""

    def apart(self, host: str) -> AbstractContextManager[None] | None:
        """A context in which a host's hypervisor does not reach others; None if that can't be done."""

    def storage(self, host: str) -> str | None:
        """The id of the storage, which other hosts may reach too, that has the host's disks; None: they are its own files."""

    def in_storage(self, host: str, server: str) -> list[str]:
        """What is in that storage of a server and the host's: disks, and snapshots of them."""

    def console(self) -> str | None:
        """The URL that opens the page for operators, once; None if there is none."""

    def manage(self) -> list[str]:
        """Options of `causeway manage` for this cloud."""


@dataclass
class DemoCloud:
    """A cloud of two cells with two hosts each, on a state directory that is kept between runs."""

    state: StateDir
    driver: str
    url: str = ""
    process: subprocess.Popen[str] | None = None
    _console: str | None = None
    _pid_file: Path = field(init=False)

    def __post_init__(self) -> None:
        self._pid_file = self.state.path / "demo.pid"

    @property
    def real(self) -> bool:
        return self.driver == "libvirt"

    @property
    def leaving(self) -> int:
        return 8

    def start(self, screen: Screen) -> None:
        """Returns when requests can be served. Raises `CloudFailed`."""
        self._stop_kept_one(screen)
        words = ["causeway", "up", "--state-dir", str(self.state.path), "--port", "0", "--driver", self.driver]
        words += ["--cells", "2", "--hosts-per-cell", "2"]
        screen.command(words)
        self.state.path.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with (self.state.path / "demo.stderr").open("w+") as errors, screen.working("Two cells start"):
            self.process = subprocess.Popen(
                [str(Path(sys.executable).parent / words[0]), *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            self._pid_file.write_text(str(self.process.pid))
            self.url = self._read_url(self.process)
            if not self.url:
                self.process.kill()
                self.process.wait()
                errors.seek(0)
                raise CloudFailed(f"causeway up did not become ready. {errors.read()[-1500:]}\n{self._log_tail()}")
        screen.note(f"{READY}{self.url} after {time.monotonic() - began:.1f} s")

    def stop(self) -> bool:
        """Stops the child; True if it ended cleanly."""
        if self.process is None:
            return True
        self.process.send_signal(signal.SIGTERM)
        try:
            clean = self.process.wait(STOP_SECONDS) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            clean = False
        self._pid_file.unlink(missing_ok=True)
        self.process = None
        return clean

    def database(self, name: str) -> str:
        return self.state.database(name)

    def ping(self, network_id: str, address: str) -> PingResult:
        """Pings from where the network's DHCP server is."""
        from causeway.virt.lab.hosts import Lab

        return Lab(self.state.lab).network.ping(network_id, address)

    def bytes_received(self, host: str) -> int | None:
        from causeway.virt.lab.hosts import Lab

        return Lab(self.state.lab).network.bytes_received(host) if self.real else None

    def observer(self, network_id: str) -> Observer | None:
        """An observer beside the network's DHCP server, which has the gateway's address."""
        from causeway.virt.lab.hosts import Lab

        return Lab(self.state.lab).network.observer(network_id) if self.real else None

    def apart(self, host: str) -> AbstractContextManager[None] | None:
        from causeway.virt.lab.hosts import Lab

        return Lab(self.state.lab).network.hypervisors_apart(host) if self.real else None

    def storage(self, host: str) -> str | None:  # noqa: ARG002
        return None

    def in_storage(self, host: str, server: str) -> list[str]:  # noqa: ARG002
        return []

    def console(self) -> str | None:
        return self._console

    def manage(self) -> list[str]:
        return ["--config-file", str(self.state.manage)]

    def stop_hosts(self) -> None:
        """Ends the lab's hosts with their guests; disks stay."""
        if self.real:
            from causeway.virt.lab.hosts import Lab

            Lab(self.state.lab).stop(keep_guests=False)

    def _read_url(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        deadline, said = time.monotonic() + START_SECONDS, ""
        while (left := deadline - time.monotonic()) > 0 and not re.search(f"^{CONSOLE}.*\n", said, re.MULTILINE):
            if not select.select([process.stdout], [], [], left)[0]:
                break
            # Not by lines: select does not see what is in a buffer already.
            part = os.read(process.stdout.fileno(), 4096).decode()
            if not part:
                break
            said += part
        found = {
            start: line.removeprefix(start)
            for line in said.splitlines()
            for start in (READY, CONSOLE)
            if line.startswith(start)
        }
        self._console = found.get(CONSOLE)
        return found.get(READY, "").strip()

    def _log_tail(self) -> str:
        log = self.state.path / "causeway.log"
        if not log.exists():
            return ""
        with log.open(errors="replace") as file:
            return "".join(deque(file, maxlen=15))

    def _stop_kept_one(self, screen: Screen) -> None:
        """Stops the cloud of an earlier run with ``--keep``, which may still use the directory. Raises `CloudFailed`."""
        pid = process_runs(self._pid_file, "causeway")
        if pid is None:
            return
        with screen.working("The cloud of an earlier run stops"):
            handle = os.pidfd_open(pid)
            try:
                signal.pidfd_send_signal(handle, signal.SIGTERM)
                if not select.select([handle], [], [], STOP_SECONDS)[0]:
                    raise CloudFailed(
                        f"The cloud of an earlier run (process {pid}) does not stop. End it and try again."
                    )
            finally:
                os.close(handle)
