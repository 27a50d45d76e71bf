"""Servers with Debian in them, as their users see them: over SSH, with the key that they named at the creation."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.virt.lab.hosts import Lab
from causeway.virt.lab.topology import NetworkOfLab, NetworkTopology
from causeway.virt.libvirt.commands import run
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until

# What the agent writes into the guest's journal when it keeps the file systems still.
FROZEN = "guest-fsfreeze called"
# Seconds by which a guest's clock may be wrong: what it takes to ask for the time on a busy machine, and no more.
TOLERANCE = 2.0
# Of one command in a guest, in seconds.
_SECONDS = 300.0
_OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "no",
    "UserKnownHostsFile": "/dev/null",
    "LogLevel": "ERROR",
    "ConnectTimeout": "20",
    "IdentitiesOnly": "yes",
}


@dataclass(frozen=True)
class Debian:
    """A server that was requested. ``inside``: how a command begins that runs in its network."""

    cloud: AuditedCloud
    server: Any
    inside: tuple[str, ...]
    key: Path

    @property
    def address(self) -> str:
        """Its address in the first network, where its users come from."""
        port = next(iter(self.cloud.member.network.ports(device_id=self.server.id, network_id=self.cloud.network_id)))
        return str(port.fixed_ips[0]["ip_address"])

    @property
    def host(self) -> str:
        return str(self.cloud.show(self.server).compute_host)

    @property
    def driver(self) -> Any:
        """Of the host that it is on."""
        return self.cloud.parts.computes[self.host].host.driver

    def command(self, script: str, **options: str) -> list[str]:
        """The command outside that runs a script of the shell in the guest. ``options``: further ones, as SSH calls them."""
        words = [word for name, value in {**_OPTIONS, **options}.items() for word in ("-o", f"{name}={value}")]
        return [*self.inside, "ssh", "-i", str(self.key), *words, f"debian@{self.address}", script]

    def run(self, script: str) -> str:
        """What a script of the shell writes in the guest."""
        done = self._attempt(script)
        assert done.returncode == 0, f"{script}: {done.returncode}\n{done.stderr}\n{self.console()[-2000:]}"
        return done.stdout.strip()

    def is_booted(self) -> None:
        """Waits until cloud-init has ended. The server must be ACTIVE."""
        self._hang_up()
        try:
            until(
                lambda: self._attempt("cloud-init status --wait >/dev/null; systemctl is-active ssh"),
                lambda done: done.stdout.strip() == "active",
                "Debian to boot",
            )
        except AssertionError as late:
            late.add_note(self.console()[-2000:])
            raise

    def boot_id(self) -> str:
        """Another one after each boot."""
        return self.run("cat /proc/sys/kernel/random/boot_id")

    def console(self) -> str:
        """The console log that users get."""
        answer = self.cloud.member.compute.get_server_console_output(self.server.id)
        return str(answer["output"]).replace("\r", "")

    def _attempt(self, script: str) -> subprocess.CompletedProcess[str]:
        """Over one connection for all scripts until the next boot: each would cost an emulated guest seconds."""
        command = self.command(script, ControlMaster="auto", ControlPath=str(self._line), ControlPersist="60")
        try:
            return subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, errors="replace", check=False
            )
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(late.cmd, 255, "", f"no end within {_SECONDS:.0f} s")

    def _hang_up(self) -> None:
        """A guest that was switched off does not end its connections."""
        if self._line.exists():
            run("ssh", "-O", "exit", "-o", f"ControlPath={self._line}", "debian", accept=(0, 255))

    @property
    def _line(self) -> Path:
        """The socket of its connection. Paths of sockets must be short."""
        return self.key.parent / str(self.server.id)[:8]


@dataclass(frozen=True)
class Debians:
    """Makes such servers."""

    cloud: AuditedCloud
    key: Path

    def requested(self, name: str, *, image: str = "debian", user_data: str = "", **fields: Any) -> Debian:
        """A server that is being built."""
        given: dict[str, Any] = {"flavor_id": "debian", "networks": [{"uuid": self.cloud.network_id}], **fields}
        if user_data:
            given["user_data"] = base64.b64encode(user_data.encode()).decode()
        server = self.cloud.member.compute.create_server(
            name=name,
            image_id=self.cloud.member.image.find_image(image).id,
            key_name="visitor",
            **given,
        )
        return Debian(self.cloud, server, self._inside(), self.key)

    def booted(self, name: str, **fields: Any) -> Debian:
        """A server whose boot is complete."""
        debian = self.requested(name, **fields)
        self.cloud.wait(debian.server, "ACTIVE")
        debian.is_booted()
        return debian

    def _inside(self) -> tuple[str, ...]:
        """In the namespace of the network's DHCP server."""
        network = self.cloud.network_id
        spaces: Mapping[str, str] = Lab(self.cloud.embedded.state.lab).network.dhcp_namespaces(
            NetworkTopology([NetworkOfLab(network)])
        )
        return ("ip", "netns", "exec", spaces[network])


def check_clock(debian: Debian) -> None:
    """The guest's clock is right."""
    before = time.time()
    there = float(debian.run("date +%s.%N"))
    after = time.time()
    assert before - TOLERANCE < there < after + TOLERANCE, f"wrong by {there - before:.1f} s"
