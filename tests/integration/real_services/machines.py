"""Hosts with real guests, beside the real services: the lab's (a libvirtd each, in namespaces of its own), on two more networks.

- the *control* network, where a host reaches the services: a bridge of this machine with an address, on which they listen;
- the *provider* network, which carries the guests' traffic between the hosts' switches, in VLANs, and has no address.

Both bridges are of this machine's own network namespace, and are all that is in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from causeway.virt.lab.hosts import Lab, LibvirtEndpoint

CONTROL, PROVIDER = "control0", "provider0"
_TIMEOUT = 20.0


def run(*command: str) -> str:
    """Raises AssertionError with what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
    return done.stdout


class Machines:
    """``address`` is this machine's on the control network; `addresses` has each host's."""

    def __init__(self, directory: Path, hosts: Sequence[str]) -> None:
        self._directory = directory
        self.lab = Lab(directory / "lab")
        digest = hashlib.sha256(str(directory).encode()).hexdigest()[:7]
        # Names of devices have room for 15 letters.
        self._bridges = {CONTROL: f"cwc{digest}", PROVIDER: f"cwp{digest}"}
        self._ports = {
            (host, device): f"{bridge}-{number}"
            for number, host in enumerate(hosts)
            for device, bridge in self._bridges.items()
        }
        self._hosts = tuple(hosts)
        prefix = _free_network()
        self.address = f"{prefix}.1"
        self.addresses = {host: f"{prefix}.{number}" for number, host in enumerate(hosts, start=2)}
        self.endpoints: dict[str, LibvirtEndpoint] = {}
        run("ip", "link", "add", self._bridges[CONTROL], "type", "bridge")
        run("ip", "addr", "add", f"{self.address}/24", "dev", self._bridges[CONTROL])
        run("ip", "link", "add", self._bridges[PROVIDER], "type", "bridge", "mcast_snooping", "0")
        for bridge in self._bridges.values():
            run("ip", "link", "set", bridge, "up")

    def start(self) -> None:
        """The hosts run, and are on both networks, when this returns."""
        self.endpoints = self.lab.start(list(self._hosts))
        for (host, device), port in self._ports.items():
            namespace = self.endpoints[host].netns
            run("ip", "link", "add", port, "type", "veth", "peer", "name", device, "netns", namespace)
            run("ip", "link", "set", port, "master", self._bridges[device], "up")
            run("ip", "-n", namespace, "link", "set", device, "up")
            if device == CONTROL:
                run("ip", "-n", namespace, "addr", "add", f"{self.addresses[host]}/24", "dev", device)

    def join_provider(self) -> str:
        """This machine is on the provider network from now on, untagged; returns the first three numbers of its /24 there.

        What it sends has its checksums: switches in user space pass frames on as they are.
        """
        prefix, bridge = _free_network(), self._bridges[PROVIDER]
        run("ip", "addr", "add", f"{prefix}.1/24", "dev", bridge)
        run("ethtool", "-K", bridge, "tx", "off")
        return prefix

    def inside(self, host: str) -> list[str]:
        """A command that runs another one on the host, in all its namespaces."""
        pid = (self.lab.root_dir / "hosts" / host / "libvirtd.pid").read_text().strip()
        return ["nsenter", "--target", pid, "--mount", "--uts", "--net", "--"]

    def cut_off(self, host: str, seconds: float) -> None:
        """For that long the host reaches nobody, and nobody reaches it: neither services and guests nor other hypervisors."""
        self._link(host, "down")
        try:
            with self.lab.network.cut_off(host):
                time.sleep(seconds)
        finally:
            self._link(host, "up")

    def stop(self) -> None:
        """Ends hosts and guests and deletes the networks."""
        self._kill_guests(self._directory)
        self.lab.stop(keep_guests=False)
        there = {link["ifname"] for link in json.loads(run("ip", "-json", "link", "show"))}
        # A namespace may keep its end for a while after it was deleted.
        for device in (*self._ports.values(), *self._bridges.values()):
            if device in there:
                subprocess.run(["ip", "link", "delete", device], capture_output=True, timeout=_TIMEOUT)

    def kill_guests(self, host: str) -> None:
        """As when the host loses its power."""
        self._kill_guests(self._directory / "hosts" / host)

    def _kill_guests(self, folder: Path) -> None:
        """The lab looks for guests by its own folder; the disks of these are where the compute processes keep them."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if Path(words[0]).name.startswith("qemu-system") and any(f"{folder}/" in word for word in words):
                with suppress(ProcessLookupError):
                    os.kill(int(path.parent.name), signal.SIGKILL)

    def _link(self, host: str, state: str) -> None:
        for device in (CONTROL, PROVIDER):
            run("ip", "link", "set", self._ports[host, device], state)


def _free_network() -> str:
    """The first three numbers of a /24 that this machine does not use."""
    used = {
        address["local"] for link in json.loads(run("ip", "-json", "addr", "show")) for address in link["addr_info"]
    }
    return next(
        prefix
        for prefix in (f"172.30.{number}" for number in range(256))
        if not any(address.startswith(f"{prefix}.") for address in used)
    )
