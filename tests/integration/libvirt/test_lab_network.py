"""The lab's network does not lose guests' words, and says whose fault it is if somebody does."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from causeway.errors import GuestFailed
from causeway.virt.lab.commands import ip_batch
from causeway.virt.lab.dhcp import mac_of_server
from causeway.virt.lab.network import LabNetwork
from causeway.virt.lab.observer import Observer
from causeway.virt.lab.topology import NetworkOfLab, NetworkTopology, PortTopology, SubnetTopology
from causeway.virt.libvirt.commands import run
from tests.integration.libvirt.lab_journeys import wait_until
from tests.process_trees import stop

SUBNET = SubnetTopology("192.168.99.0/24", "192.168.99.1", "192.168.99.1")
ADDRESS, MAC = "192.168.99.10", "02:00:00:00:00:10"
OTHER = PortTopology("02:00:00:00:00:11", "192.168.99.11")
TICKS = """
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        sender.sendto(b"tick", ("192.168.99.1", 9999))
    except OSError:
        pass
    time.sleep(0.05)
"""
# Seconds.
PATIENCE = 300.0


@dataclass
class LabWithGuest:
    """``guest``: a process that ticks in a namespace that stands for a guest, behind a tap at the host h1."""

    lab: LabNetwork
    network_id: str
    guest: subprocess.Popen[bytes]

    def serve(self, *ports: PortTopology) -> None:
        known = [PortTopology(MAC, ADDRESS), *ports]
        self.lab.sync(NetworkTopology([NetworkOfLab(self.network_id, 777, 1450, [SUBNET], known)]))

    def neighbour(self) -> str:
        """The MAC address of the observer, as the guest knows it."""
        known = run("ip", "-n", f"{self.lab.namespace('guest')}", "neigh", "show", SUBNET.dhcp_address)
        found = re.search(r"lladdr (\S+)", known)
        assert found is not None, known
        return found[1]

    def dhcp_device(self) -> str:
        namespace = next(iter(self.lab.dhcp_namespaces(NetworkTopology([NetworkOfLab(self.network_id)])).values()))
        return run("ip", "-n", namespace, "-o", "link", "show", "dhcp0")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LabWithGuest]:
    lab, network_id = LabNetwork(f"cw{uuid.uuid4().hex[:6]}", tmp_path / "network"), str(uuid.uuid4())
    guest = lab.namespace("guest")
    try:
        lab.start(["h1", "h2"])
        lab.ensure_network("h1", network_id, 777, 1450)
        run("ip", "netns", "add", guest)
        bridge = f"brq{network_id[:11]}"
        ip_batch(
            [
                f"link add tap0a1b2c3d-4e type veth peer name eth0 address {MAC} netns {guest}",
                f"link set tap0a1b2c3d-4e master {bridge} up",
            ],
            namespace=lab.namespace("h1"),
        )
        ip_batch(["link set eth0 up", f"addr add {ADDRESS}/24 dev eth0"], namespace=guest)
        ticking = subprocess.Popen(["ip", "netns", "exec", guest, sys.executable, "-I", "-c", TICKS])
        try:
            made = LabWithGuest(lab, network_id, ticking)
            made.serve(OTHER)
            yield made
        finally:
            ticking.kill()
            ticking.wait()
    finally:
        lab.stop()


def test_a_port_that_is_deleted_silences_no_other_guest(cloud: LabWithGuest) -> None:
    with cloud.lab.observer(cloud.network_id) as observer:
        observer.wait_for(ADDRESS, 0.0, PATIENCE)
        assert cloud.neighbour() == mac_of_server(cloud.network_id)
        before = cloud.dhcp_device()
        cloud.serve()
        # The same device with the same address: what the guest knows of its gateway stays true.
        assert cloud.dhcp_device() == before
        observer.wait_for(ADDRESS, time.monotonic(), PATIENCE)


def test_a_server_that_has_to_be_joined_again_keeps_its_address(cloud: LabWithGuest) -> None:
    with cloud.lab.observer(cloud.network_id) as observer:
        observer.wait_for(ADDRESS, 0.0, PATIENCE)
        ip_batch([f"link delete dh{cloud.network_id[:11]}"], namespace=cloud.lab.namespace("underlay"))
        cloud.serve()
        assert f"link/ether {mac_of_server(cloud.network_id)} " in cloud.dhcp_device()
        observer.wait_for(ADDRESS, time.monotonic(), PATIENCE)


def test_the_observer_knows_whether_the_guest_or_the_network_was_silent(cloud: LabWithGuest) -> None:
    with cloud.lab.observer(cloud.network_id) as observer:
        observer.wait_for(ADDRESS, 0.0, PATIENCE)
        began = time.monotonic()
        with cloud.lab.cut_off("h1"):
            # A guest that is heard again has sent something meanwhile.
            _wait_until_sent(observer, began, 5)
        observer.wait_for(ADDRESS, time.monotonic(), PATIENCE)
        lost = observer.silence(ADDRESS, began)
        assert lost.sent is not None and lost.sent["h1"] >= 5 and lost.sent["h2"] == 0
        assert "the network lost what the guest sent" in str(lost) and "at h1" in str(lost)
        began = time.monotonic()
        stop(cloud.guest.pid)
        # Whoever stands still is not heard after this moment, and continues only then.
        assert not _is_heard(observer, time.monotonic() + 0.5)
        cloud.guest.send_signal(signal.SIGCONT)
        observer.wait_for(ADDRESS, time.monotonic(), PATIENCE)
        assert "the guest sent nothing" in str(observer.silence(ADDRESS, began))


def _wait_until_sent(observer: Observer, began: float, count: int) -> None:
    wait_until(lambda: sum((observer.sent(ADDRESS, began, time.monotonic()) or {}).values()) >= count, PATIENCE)


def _is_heard(observer: Observer, after: float) -> bool:
    try:
        observer.wait_for(ADDRESS, after, 1.0)
    except GuestFailed:
        return False
    return True
