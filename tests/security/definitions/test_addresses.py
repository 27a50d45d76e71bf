"""In a live migration the hosts say addresses, disks and machines to each other: none of them is acted on unchecked.

libvirt runs the command that a URI names (``qemu+ext:///system?command=PROGRAM``), as root where a libvirtd opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("libvirt")

from causeway.errors import CausewayError, ClaimRefused, GuestRefused, HostUnreachable
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.virt.driver import SWAP_DISK, GuestSpec, LocalDisk, RootDisk
from causeway.virt.libvirt.live import live_source, live_target
from causeway.virt.libvirt.live.live_settings import LiveSettings
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.live_guest import LiveDisk, LiveOptions, LiveSource, LiveTarget, Presence
from tests.integration.libvirt.lab_guests import Cloud
from tests.integration.libvirt.lab_journeys import no_word, prepared
from tests.security.definitions.guests import UUID

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

NO_ADDRESSES = (
    "",
    " ",
    "-x",
    "host name",
    "host/../x",
    "host?command=/bin/sh",
    "host:1/system?socket=/x",
    "[::1",
    "::1]",
    "a" * 254,
    "host\n",
    "host#",
    "%2f",
    "h\u00f6st",
    "10.0.0.1;x",
    "user@host",
    "%s",
    # Python allows any zone.
    "fe80::1%x?command=y",
)


def program(folder: Path) -> tuple[Path, Path]:
    """A program, and the file that it makes when it is run."""
    path, mark = folder / "program", folder / "mark"
    path.write_text(f"#!/bin/sh\necho run > {mark}\n")
    path.chmod(0o755)
    return path, mark


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(GuestRefused, match="address"):
        LiveSettings("10.0.0.1", scheme="tls").uri_of(address)


@pytest.mark.parametrize("address", ["10.0.0.7", "fd00::7", "host7", "host-7.cell1.example.org"])
def test_other_hosts_are_reached_as_this_hosts_options_say(address: str) -> None:
    own = LiveSettings("10.0.0.1", uri="qemu+tls://%s/system?pkipath=/pki")
    shown = f"[{address}]" if ":" in address else address
    assert own.uri_of(address) == f"qemu+tls://{shown}/system?pkipath=/pki"


def test_whoever_tries_to_reach_a_target_runs_nothing_of_its_choice(tmp_path: Path) -> None:
    path, mark = program(tmp_path)
    there = LiveTarget("127.0.0.1", {"uri": f"qemu+ext:///system?command={path}&socket=/x", "port": 1})
    with pytest.raises(HostUnreachable):
        live_source.check_reaches(LiveSettings("127.0.0.1", uri="qemu+tcp://%s:1/system"), there)
    assert not mark.exists()


@pytest.mark.parametrize("port", ["", "-1", "1 --x", "99999999", "\u0661", "../1"])
def test_whoever_tries_to_reach_a_target_wants_a_port(port: str) -> None:
    with pytest.raises(HostUnreachable):
        live_source.check_reaches(LiveSettings(), LiveTarget("127.0.0.1", {"port": port}))


@pytest.mark.libvirt
@pytest.mark.timeout(240)
def test_a_source_runs_nothing_of_its_targets_choice(cloud: Cloud, tmp_path: Path) -> None:
    """A guest goes where this host's options say, and its definition there is what a target of ours would make."""
    guest = cloud.guest()
    guest.spawn()
    path, mark = program(tmp_path)
    source, target = cloud.drivers
    there = prepared(guest, target)
    emulator = str(there.details["xml"]).replace("<devices>", f"<devices><emulator>{path}</emulator>")
    with pytest.raises(CausewayError) as refusal:
        _migrate(source, guest.spec(), replace(there, details=there.details | {"xml": emulator}))
    assert (refusal.value.code, mark.exists()) == ("guest_refused", False)
    elsewhere = there.details | {"uri": f"qemu+ext:///system?command={path}&socket=/x"}
    _migrate(source, guest.spec(), replace(there, details=elsewhere))
    guest.driver = target
    assert target.presence(guest.uuid) is Presence.RUNNING
    assert not mark.exists()


def _migrate(source: LibvirtDriver, spec: GuestSpec, there: LiveTarget) -> None:
    source.live_migrate(spec, there, LiveOptions(), no_word)


GIB = 2**30


def spec() -> GuestSpec:
    server = Instance(UUID, "project", "user", "server", Flavor("1", "small", 1, 128, root_gb=1))
    swap = LocalDisk(SWAP_DISK, "/dev/vdb", 64)
    return GuestSpec(server, RootDisk(None, None, size_gb=1), [], [], local_disks=[swap])


@pytest.mark.parametrize(
    "disk",
    [
        LiveDisk("disk", GIB + 1),
        LiveDisk("disk", 100 << 40),
        LiveDisk("disk", 0),
        LiveDisk("disk", -1),
        LiveDisk(SWAP_DISK, (64 << 20) + 1),
        LiveDisk("disk.eph0", 1024),
        LiveDisk("disk.config", 1024),
        LiveDisk("disk.info", 1024),
        LiveDisk("disk/../../x", 1024),
        LiveDisk("../disk", 1024),
        LiveDisk("", 1024),
    ],
)
def test_a_target_makes_no_disk_that_the_server_does_not_have(tmp_path: Path, disk: LiveDisk) -> None:
    source = LiveSource("QEMU", 1, [LiveDisk(SWAP_DISK, 64 << 20), disk])
    with pytest.raises(GuestRefused, match="disk"):
        live_target.make_disks(InstanceDisks(tmp_path / "instances", 10.0), spec(), source, Presence.ABSENT)
    assert not (tmp_path / "instances").exists()


class Hypervisor:
    """Notes what it is asked about."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def getVersion(self) -> int:
        return 9_000_000

    def getDomainCapabilities(self, *arguments: object) -> str:
        self.asked += arguments
        return ""

    def compareHypervisorCPU(self, *arguments: object) -> int:
        self.asked += arguments
        return 2

    def call(self, _what: str, function: Callable[[Any], Any], **_how: object) -> Any:
        return function(self)


@pytest.mark.parametrize(
    "details",
    [
        {"machine": "pc-i440fx-7.2,dumpdtb=/etc/x"},
        {"machine": "microvm"},
        {"arch": "x86_64/../../x"},
        {"cpu": "<cpu"},
        {"cpu": "<!DOCTYPE cpu SYSTEM 'file:///etc/shadow'><cpu/>"},
        {"cpu": "<cpu><model>host,+x</model></cpu>"},
        {"cpu": "<cpu><model>qemu64</model><feature name='/x'/></cpu>"},
        {"cpu": 7},
    ],
)
def test_what_a_source_says_of_its_machine_is_checked_before_libvirt_reads_it(details: dict[str, object]) -> None:
    hypervisor = Hypervisor()
    source = LiveSource("QEMU", 1, details={"virt_type": "kvm"} | details)
    with pytest.raises(ClaimRefused):
        live_source.check_target(cast(Any, hypervisor), source, virt_type="kvm", room=2**40)
    assert hypervisor.asked == []


def test_of_a_cpu_only_model_and_features_are_compared() -> None:
    hypervisor = Hypervisor()
    cpu = "<cpu mode='custom'><model>qemu64</model><feature policy='require' name='vmx'/><evil file='/x'/></cpu>"
    source = LiveSource("QEMU", 1, details={"virt_type": "kvm", "machine": "pc-q35-7.2", "cpu": cpu})
    live_source.check_target(cast(Any, hypervisor), source, virt_type="kvm", room=2**40)
    assert "vmx" in str(hypervisor.asked) and "evil" not in str(hypervisor.asked)
