"""What libvirt shows of guests on their way, what they are to be at the target, and what is asked of libvirt for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("libvirt")

import libvirt

from causeway.conf import new_config
from causeway.errors import GuestFailed, GuestRefused
from causeway.model.network import Vif
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.virt.lab.certificates import Authority
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, domain_xml
from causeway.virt.libvirt.guest_xml.migratable_xml import for_target, has_volumes, local_disks
from causeway.virt.libvirt.hypervisor_events import GuestEvents
from causeway.virt.libvirt.live import dirty_memory
from causeway.virt.libvirt.live.live_settings import LiveSettings, from_options
from causeway.virt.libvirt.live.migration import LiveMigrations, arrival_of, flags_of, migration_of, progress_of
from causeway.virt.libvirt.presence import presence_of, refuse_in_transit
from causeway.virt.live_guest import LiveOptions, Presence

UUID = "8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001"
RUNNING, PAUSED, OFF = libvirt.VIR_DOMAIN_RUNNING, libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_SHUTOFF


class Domain:
    """Of libvirt, as far as it is asked here."""

    def __init__(self, state: int, reason: int, *, persistent: bool = True) -> None:
        self._state = [state, reason]
        self._persistent = persistent

    def state(self) -> list[int]:
        return self._state

    def isPersistent(self) -> int:
        return int(self._persistent)

    def UUIDString(self) -> str:
        return UUID


def migrations_of(domain: Domain) -> LiveMigrations:
    """Of a host whose hypervisor has this guest only."""

    class Hypervisor:
        def lookupByUUIDString(self, _uuid: str) -> Domain:
            return domain

    class Connection:
        events = GuestEvents()

        def call_aside(self, _what: str, function: Callable[[Any], Any], *, timeout: float) -> Any:
            assert timeout
            return function(Hypervisor())

    return LiveMigrations(cast(Any, Connection()), LiveSettings(), Path)


@pytest.mark.parametrize(
    ("state", "reason", "defined", "shown"),
    [
        (RUNNING, libvirt.VIR_DOMAIN_RUNNING_BOOTED, True, Presence.RUNNING),
        (RUNNING, libvirt.VIR_DOMAIN_RUNNING_MIGRATED, False, Presence.RUNNING),
        (RUNNING, libvirt.VIR_DOMAIN_RUNNING_MIGRATION_CANCELED, True, Presence.RUNNING),
        (RUNNING, libvirt.VIR_DOMAIN_RUNNING_POSTCOPY, True, Presence.INCOMING),
        (RUNNING, libvirt.VIR_DOMAIN_RUNNING_POSTCOPY_FAILED, True, Presence.INCOMING),
        (libvirt.VIR_DOMAIN_SHUTDOWN, 0, True, Presence.RUNNING),
        (libvirt.VIR_DOMAIN_PMSUSPENDED, 0, True, Presence.RUNNING),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_USER, True, Presence.PAUSED),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR, True, Presence.PAUSED),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP, True, Presence.PAUSED),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP, False, Presence.INCOMING),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION, False, Presence.INCOMING),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION, True, Presence.PAUSED_FOR_MIGRATION),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY, True, Presence.PAUSED_FOR_MIGRATION),
        (PAUSED, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, True, Presence.PAUSED_FOR_MIGRATION),
        (OFF, libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN, True, Presence.OFF),
        (OFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED, True, Presence.OFF),
        (OFF, libvirt.VIR_DOMAIN_SHUTOFF_CRASHED, True, Presence.CRASHED),
        (libvirt.VIR_DOMAIN_CRASHED, 0, True, Presence.CRASHED),
    ],
)
def test_state_and_reason_say_who_has_the_guest(state: int, reason: int, defined: bool, shown: Presence) -> None:
    assert presence_of(state, reason, defined=defined) is shown


def test_nothing_is_done_with_a_guest_on_its_way() -> None:
    for left_alone in (
        Domain(PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION),
        Domain(PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION, persistent=False),
        Domain(RUNNING, libvirt.VIR_DOMAIN_RUNNING_POSTCOPY),
        Domain(OFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED),
    ):
        with pytest.raises(GuestFailed, match="on its way"):
            refuse_in_transit(left_alone)
    for own in (
        Domain(PAUSED, libvirt.VIR_DOMAIN_PAUSED_USER),
        Domain(PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP),
        Domain(OFF, libvirt.VIR_DOMAIN_SHUTOFF_CRASHED),
        Domain(RUNNING, libvirt.VIR_DOMAIN_RUNNING_MIGRATION_CANCELED),
    ):
        refuse_in_transit(own)


def guest(folder: str, *, bridge: str, volume: str, cpus: list[int], cache: str = "none") -> GuestHardware:
    return GuestHardware(
        uuid=UUID,
        name=f"instance-{UUID}",
        title="",
        virt_type="qemu",
        vcpus=1,
        memory_mb=192,
        console_log=Path(folder) / "console.log",
        config_drive=Path(folder) / "disk.config",
        disks=[
            GuestDisk("vda", Path(folder) / "disk", "qcow2", is_root=True, cache=cache),
            GuestDisk("vdb", Path(volume), "raw", is_block=volume.startswith("/dev"), serial="volume-1"),
        ],
        vifs=[
            Vif(
                id="3f0c9f0a-aaaa-bbbb-cccc-000000000001",
                address="fa:16:3e:aa:bb:cc",
                network_id="7c0e0000-1111-2222-3333-444444444444",
                vif_type="bridge",
                details={"bridge_name": bridge},
            )
        ],
        shared_cpus=cpus,
        has_agent=True,
    )


def running(hardware: GuestHardware) -> str:
    """As libvirt shows it when it runs: with what libvirt added."""
    domain = ET.fromstring(domain_xml(hardware))
    devices = domain.find("devices")
    assert devices is not None
    ET.SubElement(devices, "emulator").text = "/usr/bin/of-the-source"
    for channel in devices.iterfind("channel"):
        ET.SubElement(channel, "source", mode="bind", path="/source/channel/org.qemu.guest_agent.0")
    for disk in devices.iterfind("disk"):
        chain = ET.SubElement(disk, "backingStore", type="file")
        ET.SubElement(chain, "source", file="/source/images/base")
        ET.SubElement(disk, "alias", name="virtio-disk")
        ET.SubElement(disk, "address", type="pci", slot="0x04")
    return ET.tostring(domain, encoding="unicode")


def test_the_guest_keeps_what_it_sees_and_gets_the_places_of_the_target() -> None:
    source = running(guest("/source/1", bridge="brq-source", volume="/mnt/volume", cpus=[0, 1]))
    wanted = guest("/target/1", bridge="brq-target", volume="/dev/sdx", cpus=[4], cache="writeback")
    reported = for_target(source, domain_xml(wanted))
    assert "/source/" not in reported and "brq-source" not in reported and "of-the-source" not in reported
    domain = ET.fromstring(reported)
    vda, vdb, config = domain.findall("devices/disk")
    assert [disk.find("source").attrib for disk in (vda, vdb, config)] == [  # type: ignore[union-attr]
        {"file": "/target/1/disk"},
        {"dev": "/dev/sdx"},
        {"file": "/target/1/disk.config"},
    ]
    assert vda.find("driver").get("cache") == "writeback"  # type: ignore[union-attr]
    assert vdb.get("type") == "block"
    assert vda.find("address") is not None
    assert vda.find("backingStore") is None
    assert domain.find("devices/interface/source").get("bridge") == "brq-target"  # type: ignore[union-attr]
    assert domain.find("devices/interface/mtu") is not None
    assert domain.find("devices/channel/target") is not None
    assert {path.get("path") for path in domain.iterfind("devices/*[@type='file']/source") if path.get("path")} == {
        "/target/1/console.log"
    }
    assert domain.find("vcpu").get("cpuset") == "4"  # type: ignore[union-attr]


def test_cpus_that_were_pinned_are_pinned_to_those_of_the_target() -> None:
    def pinned(cpu: int) -> GuestHardware:
        hardware = guest("/1", bridge="b", volume="/v", cpus=[])
        cell = InstanceNUMACell(id=cpu, cpuset=[], pcpuset=[0], memory=192, cpu_pinning_raw={"0": cpu})
        hardware.numa_topology = InstanceNUMATopology(cells=[cell])
        return hardware

    domain = ET.fromstring(for_target(running(pinned(2)), domain_xml(pinned(5))))
    assert [pin.get("cpuset") for pin in domain.iterfind("cputune/vcpupin")] == ["5"]
    assert len(domain.findall("numatune")) == 1


def test_what_the_target_does_not_know_does_not_travel() -> None:
    source = running(guest("/source/1", bridge="b", volume="/v", cpus=[]))
    without_volume, without_port = (guest("/target/1", bridge="b", volume="/v", cpus=[]) for _ in range(2))
    del without_volume.disks[1]
    without_port.vifs.clear()
    with pytest.raises(GuestRefused, match="disk vdb"):
        for_target(source, domain_xml(without_volume))
    with pytest.raises(GuestRefused, match="port fa:16:3e:aa:bb:cc"):
        for_target(source, domain_xml(without_port))
    own = source.replace("</devices>", "<hostdev mode='subsystem' type='pci'/></devices>")
    with pytest.raises(GuestRefused, match="devices of its host"):
        for_target(own, domain_xml(guest("/target/1", bridge="b", volume="/v", cpus=[])))


def test_local_disks_are_copied_along() -> None:
    xml = running(guest("/source/1", bridge="b", volume="/v", cpus=[]))
    assert local_disks(xml, Path("/source/1")) == {"vda": Path("/source/1/disk")}
    assert has_volumes(xml)


def test_the_flags_of_a_migration_follow_disks_and_options() -> None:
    def has(flag: int, *, disks: bool = True, volumes: bool = False, options: LiveOptions | None = None) -> bool:
        return bool(flags_of(["vda"] if disks else [], options or LiveOptions(), both_open=volumes) & flag)

    for always in (
        libvirt.VIR_MIGRATE_LIVE,
        libvirt.VIR_MIGRATE_PEER2PEER,
        libvirt.VIR_MIGRATE_PERSIST_DEST,
        libvirt.VIR_MIGRATE_UNDEFINE_SOURCE,
        libvirt.VIR_MIGRATE_ABORT_ON_ERROR,
    ):
        assert has(always)
    assert has(libvirt.VIR_MIGRATE_NON_SHARED_INC) and not has(libvirt.VIR_MIGRATE_NON_SHARED_INC, disks=False)
    assert has(libvirt.VIR_MIGRATE_UNSAFE, volumes=True) and not has(libvirt.VIR_MIGRATE_UNSAFE)
    assert has(libvirt.VIR_MIGRATE_TLS, options=LiveOptions(tls=True)) and not has(libvirt.VIR_MIGRATE_TLS)
    assert not flags_of(["vda"], LiveOptions(), runs_on=False) & libvirt.VIR_MIGRATE_LIVE
    both = LiveOptions(post_copy=True, auto_converge=True)
    assert has(libvirt.VIR_MIGRATE_POSTCOPY, options=both) and not has(libvirt.VIR_MIGRATE_AUTO_CONVERGE, options=both)
    assert has(libvirt.VIR_MIGRATE_AUTO_CONVERGE, options=LiveOptions(auto_converge=True))


def test_others_reach_a_libvirtd_at_the_configured_address() -> None:
    assert LiveSettings("10.0.0.7").control_uri() == "qemu+tcp://10.0.0.7/system"
    assert LiveSettings("fd00::7", scheme="tls").control_uri() == "qemu+tls://[fd00::7]/system"
    own = LiveSettings("10.0.0.7", uri="qemu+tls://%s/system?pkipath=/etc/pki", scheme="tcp")
    assert own.control_uri() == "qemu+tls://10.0.0.7/system?pkipath=/etc/pki"


def test_settings_of_live_migrations_follow_the_configuration() -> None:
    given = {
        "live_migration_inbound_addr": "10.0.0.7",
        "live_migration_uri": "qemu+tls://%s/system?pkipath=/etc/pki",
        "live_migration_scheme": "tls",
        "live_migration_downtime": 700,
    }
    assert from_options(new_config(libvirt=given)) == LiveSettings(
        "10.0.0.7", uri="qemu+tls://%s/system?pkipath=/etc/pki", scheme="tls", downtime=700
    )
    assert from_options(new_config(my_ip="10.0.0.8")) == LiveSettings("10.0.0.8")


def test_only_migrations_to_other_hosts_are_reported() -> None:
    class Job:
        def __init__(self, stats: dict[str, int]) -> None:
            self.stats = stats

        def jobStats(self) -> dict[str, int]:
            return self.stats

    out = {
        "type": 2,
        "operation": libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT,
        "memory_total": 7,
        "disk_remaining": 3,
    }
    assert migration_of(Job(out)) == out
    assert migration_of(Job({"type": 0})) is None
    assert migration_of(Job({"type": 2, "operation": libvirt.VIR_DOMAIN_JOB_OPERATION_BACKUP})) is None
    progress = progress_of(out)
    assert (progress.memory_total, progress.disk_remaining, progress.memory_remaining) == (7, 3, 0)


def test_what_came_is_what_the_target_has_counted() -> None:
    class Arrived:
        def __init__(self, **stats: int) -> None:
            self.stats = stats

        def jobStats(self, flags: int) -> dict[str, int]:
            # Read without that it is gone.
            assert flags == libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED | libvirt.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED
            return self.stats

    came = {"operation": libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN, "memory_processed": 7, "disk_processed": 3}
    found = arrival_of(Arrived(type=libvirt.VIR_DOMAIN_JOB_COMPLETED, **came))
    assert found is not None and (found.memory_processed, found.disk_processed) == (7, 3)
    assert arrival_of(Arrived(type=libvirt.VIR_DOMAIN_JOB_FAILED, **came)) is None
    assert arrival_of(Arrived(type=libvirt.VIR_DOMAIN_JOB_NONE)) is None
    backup = libvirt.VIR_DOMAIN_JOB_OPERATION_BACKUP
    assert arrival_of(Arrived(type=libvirt.VIR_DOMAIN_JOB_COMPLETED, operation=backup)) is None


@pytest.mark.parametrize(
    ("version", "kind", "missed"),
    [
        (7_002_022, "qemu", True),
        (8_002_000, "qemu", True),
        (9_000_000, "qemu", False),
        (10_001_002, "qemu", False),
        (7_002_022, "kvm", False),
    ],
)
def test_qemu_misses_writes_in_known_versions(version: int, kind: str, missed: bool) -> None:
    class Hypervisor:
        def getVersion(self) -> int:
            return version

    assert dirty_memory.is_missed(Hypervisor(), f"<domain type='{kind}'/>") is missed


def test_post_copy_is_reported() -> None:
    class PostCopy(Domain):
        def jobStats(self) -> dict[str, int]:
            return {"type": 2, "operation": libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, "memory_remaining": 5}

    found = PostCopy(PAUSED, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY), PostCopy(RUNNING, 1)
    reported = [migrations_of(each).progress(UUID) for each in found]
    assert [(each.post_copy, each.memory_remaining) for each in reported if each is not None] == [(True, 5), (False, 5)]


def test_a_migration_that_ends_while_it_is_looked_at_is_not_under_way() -> None:
    class Leaving(Domain):
        def jobStats(self) -> dict[str, int]:
            return {"type": 2, "operation": libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT}

        def state(self) -> list[int]:
            libvirt.open("test:///default").lookupByUUIDString(UUID)
            raise AssertionError("there is no such guest")

    assert migrations_of(Leaving(RUNNING, 1)).progress(UUID) is None


def test_certificates_stay_until_the_host_has_another_address_or_the_lab_another_authority(tmp_path: Path) -> None:
    host, certificate = tmp_path / "host", tmp_path / "host" / "server-cert.pem"

    def made(address: str) -> bytes:
        Authority(tmp_path / "pki").ensure("cell1-host1", address, host)
        return certificate.read_bytes()

    first = made("10.255.0.2")
    assert made("10.255.0.2") == first
    second = made("10.255.0.3")
    assert second != first
    # Torn by a power cut.
    certificate.write_bytes(second[:40])
    third = made("10.255.0.3")
    assert third not in (first, second)
    (tmp_path / "pki" / "authority.pem").write_bytes(b"")
    assert made("10.255.0.3") != third
    assert (host / "client-key.pem").stat().st_mode & 0o077 == 0


def test_a_guest_that_runs_at_the_target_while_its_memory_follows_is_not_aborted() -> None:
    class PostCopy(Domain):
        def jobStats(self) -> dict[str, int]:
            return {"type": 2, "operation": libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT}

        def abortJob(self) -> None:
            raise AssertionError("the guest is lost")

    migrations = migrations_of(PostCopy(PAUSED, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY))
    with pytest.raises(GuestFailed, match="can't be aborted"):
        migrations.abort(UUID)
