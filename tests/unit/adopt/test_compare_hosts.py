"""What is found on a host beside its records: equal ones give no finding, and each difference gives its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.adopt.hosts import RecordedHost, compare
from causeway.adopt.hosts.comparison import running
from causeway.model.adoption import Finding
from causeway.model.found_host import (
    FoundDisk,
    FoundFolder,
    FoundGuest,
    FoundHost,
    FoundIdentity,
    FoundInterface,
    NovaProcess,
)
from causeway.model.instance import Instance
from causeway.model.states import PowerState, TaskState, VmState
from tests.unit.adopt.found_hosts import (
    IMAGE,
    INSTANCES,
    MAC,
    MOUNTS,
    SERVER,
    SHARE,
    found_guest,
    found_host,
    recorded_host,
)

OTHER = "00000000-1111-2222-3333-444444444444"


class Case:
    """A host that agrees with its records, to be changed."""

    def __init__(self) -> None:
        self.found: FoundHost = found_host()
        self.recorded: RecordedHost = recorded_host()

    @property
    def guest(self) -> FoundGuest:
        return self.found.hypervisor.guests[0]

    @property
    def instance(self) -> Instance:
        return self.recorded.servers[0].instance

    def findings(self) -> list[Finding]:
        return compare(self.found, self.recorded)


Change = Callable[[Case], Any]


def given_to(name: str, value: object, *, of: Callable[[Case], object] = lambda case: case.guest) -> Change:
    return lambda case: setattr(of(case), name, value)


def disk(place: int, **values: object) -> Change:
    def change(case: Case) -> None:
        for name, value in values.items():
            setattr(case.guest.disks[place], name, value)

    return change


def recorded(**values: object) -> Change:
    def change(case: Case) -> None:
        for name, value in values.items():
            setattr(case.instance, name, value)

    return change


# kind of the finding -> what is changed; a kind may be found for several reasons
BLOCKING: list[tuple[str, Change]] = [
    ("host.name", given_to("host", "host2", of=lambda case: case.found)),
    ("node.unknown", given_to("node_uuid", None, of=lambda case: case.recorded)),
    ("identity.missing", lambda case: case.found.identities.clear()),
    ("identity.differs", given_to("node_uuid", OTHER, of=lambda case: case.recorded)),
    ("identity.differs", lambda case: case.found.identities.append(FoundIdentity("/etc/nova/compute_id", OTHER))),
    ("identity.differs", lambda case: case.found.identities.append(FoundIdentity("/etc/nova/compute_id", None))),
    ("hypervisor.name", given_to("hostname", "other.example", of=lambda case: case.found.hypervisor)),
    ("guest.missing", lambda case: case.found.hypervisor.guests.clear()),
    ("guest.duplicate", lambda case: case.found.hypervisor.guests.append(found_guest())),
    ("guest.unreadable", given_to("lack", "its definition is no XML")),
    ("guest.transient", given_to("is_persistent", False)),
    (
        "guest.unknown",
        lambda case: case.found.hypervisor.guests.append(FoundGuest(OTHER, "mine", PowerState.RUNNING, is_novas=True)),
    ),
    (
        "guest.unknown",
        lambda case: case.found.hypervisor.guests.append(FoundGuest(OTHER, "instance-0000000a", PowerState.RUNNING)),
    ),
    ("server.unsettled", recorded(task_state=TaskState.REBOOTING)),
    ("server.unsettled", recorded(vm_state=VmState.RESIZED)),
    ("power.differs", recorded(power_state=PowerState.SHUTDOWN, vm_state=VmState.STOPPED)),
    ("power.differs", recorded(power_state=PowerState.PAUSED, vm_state=VmState.PAUSED)),
    ("power.differs", given_to("power_state", PowerState.PAUSED)),
    ("disk.missing", disk(0, source="/elsewhere/disk", serial="x")),
    ("disk.missing", lambda case: case.guest.disks.pop(1)),
    ("disk.unknown", lambda case: case.guest.disks.append(FoundDisk("vdz", source="/dev/sda", kind="block"))),
    (
        "disk.unknown",
        lambda case: case.guest.disks.append(FoundDisk("vdz", source=f"{INSTANCES}/{OTHER}/disk", disk_format="qcow2")),
    ),
    (
        "disk.unknown",
        lambda case: case.guest.disks.append(FoundDisk("vdz", source=f"{INSTANCES}/{SERVER}/disk.rescue")),
    ),
    ("disk.unreadable", disk(0, lack="it is gone")),
    ("disk.encrypted", disk(0, is_encrypted=True)),
    ("disk.format", disk(0, disk_format="raw")),
    ("disk.format", disk(1, disk_format="raw")),
    ("disk.format", disk(0, kind="block", source=f"/dev/vg/{SERVER}_disk", disk_format="raw")),
    ("disk.format", disk(0, kind="network", protocol="rbd", source=f"vms/{SERVER}_disk", disk_format="raw")),
    ("base.missing", disk(0, is_base_there=False)),
    ("volume.missing", lambda case: case.guest.disks.pop(2)),
    ("volume.encrypted", disk(2, is_encrypted=True)),
    ("volume.elsewhere", disk(2, source="/mnt/other/volume")),
    ("mount.missing", lambda case: case.found.hypervisor.mounts.clear()),
    ("port.missing", lambda case: case.guest.interfaces.clear()),
    ("port.unknown", lambda case: case.guest.interfaces.append(FoundInterface("fa:16:3e:00:00:01"))),
    ("port.duplicate", lambda case: case.guest.interfaces.append(FoundInterface(MAC))),
    ("pci.missing", lambda case: case.guest.pci_addresses.clear()),
    ("pci.unknown", lambda case: case.guest.pci_addresses.append("0000:82:00.0")),
    ("numa.differs", given_to("pinned", {})),
    ("numa.differs", given_to("pinned", {"0": [3, 4]})),
    ("unsupported.vgpu", given_to("mediated_devices", [OTHER])),
    ("unsupported.persistent_memory", given_to("has_persistent_memory", True)),
    ("unsupported.encrypted_memory", given_to("has_encrypted_memory", True)),
    ("unsupported.share", given_to("shares", ["/srv"])),
    ("unsupported.host_device", given_to("other_host_devices", ["usb"])),
]
DIFFERENCES: list[tuple[str, Change]] = [
    ("hypervisor.renamed", lambda case: called(case, "host1.example")),
    ("guest.name", given_to("name", "instance-0000000b")),
    ("guest.autostart", given_to("starts_by_itself", True)),
    (
        "guest.foreign",
        lambda case: case.found.hypervisor.guests.append(FoundGuest(OTHER, "router", PowerState.RUNNING)),
    ),
    ("power.stopped", given_to("power_state", PowerState.SHUTDOWN)),
    ("memory.missing", lambda case: suspended(case)),
    ("base.unknown", disk(0, base=f"{INSTANCES}/_base/0123")),
    ("base.unknown", recorded(image_ref=OTHER)),
    ("disk.small", disk(0, size=2**29)),
    ("folder.orphaned", lambda case: case.found.hypervisor.folders.append(FoundFolder(OTHER))),
    ("folder.orphaned", lambda case: case.found.hypervisor.folders.append(FoundFolder(f"{SERVER}_resize"))),
    ("mount.unused", lambda case: case.found.hypervisor.mounts.append(f"{MOUNTS}/none")),
]
ALL = BLOCKING + DIFFERENCES


def called(case: Case, name: str) -> None:
    case.found.hypervisor.hostname = case.recorded.hypervisor_hostname = name


def suspended(case: Case) -> None:
    recorded(vm_state=VmState.SUSPENDED, power_state=PowerState.SHUTDOWN)(case)
    case.guest.power_state = PowerState.SHUTDOWN


def identified(cases: list[tuple[str, Change]]) -> list[str]:
    return [f"{kind}-{place}" for place, (kind, _change) in enumerate(cases)]


def test_a_host_that_agrees_with_its_records_has_no_finding() -> None:
    assert Case().findings() == []


def test_a_root_disk_may_stand_on_the_image_as_causeway_keeps_it() -> None:
    case = Case()
    disk(0, base=f"{INSTANCES}/causeway/_base/{IMAGE}")(case)
    assert case.findings() == []


@pytest.mark.parametrize(("kind", "change"), BLOCKING, ids=identified(BLOCKING))
def test_a_difference_that_endangers_a_guest_blocks(kind: str, change: Change) -> None:
    case = Case()
    change(case)
    (found,) = (finding for finding in case.findings() if finding.kind == kind)
    assert found.blocks and found.what and found.remedy


@pytest.mark.parametrize(("kind", "change"), DIFFERENCES, ids=identified(DIFFERENCES))
def test_a_difference_that_does_no_harm_is_said_and_does_not_block(kind: str, change: Change) -> None:
    case = Case()
    change(case)
    assert [(finding.kind, finding.blocks) for finding in case.findings()] == [(kind, False)]


@given(st.lists(st.sampled_from(range(len(ALL))), max_size=4, unique=True))
def test_whatever_differs_together_the_host_is_compared(places: list[int]) -> None:
    case = Case()
    for place in places:
        try:
            ALL[place][1](case)
        except IndexError:
            # What this one changes was deleted by an earlier change.
            continue
    assert all(finding.what and finding.subject for finding in case.findings())


@pytest.mark.parametrize("now", [PowerState.SHUTDOWN, PowerState.CRASHED])
@pytest.mark.parametrize("was", [PowerState.SHUTDOWN, PowerState.SUSPENDED, PowerState.NOSTATE])
def test_all_that_is_off_is_equal(was: PowerState, now: PowerState) -> None:
    case = Case()
    recorded(vm_state=VmState.STOPPED, power_state=was)(case)
    case.guest.power_state = now
    assert case.findings() == []


def test_a_server_with_an_error_may_have_no_guest() -> None:
    case = Case()
    recorded(vm_state=VmState.ERROR)(case)
    case.found.hypervisor.guests.clear()
    case.found.hypervisor.mounts.clear()
    (found,) = case.findings()
    assert (found.kind, found.blocks) == ("guest.missing", False)


def test_the_guest_of_a_rescue_may_have_fewer_disks_and_the_rescue_s() -> None:
    case = Case()
    recorded(vm_state=VmState.RESCUED)(case)
    root = case.guest.disks[0]
    case.guest.disks = [root, FoundDisk("vdb", source=f"{INSTANCES}/{SERVER}/disk.rescue", disk_format="qcow2")]
    case.found.hypervisor.mounts.clear()
    assert case.findings() == []


def test_a_root_disk_in_a_pool_is_accepted_where_the_compute_service_has_pools() -> None:
    case = Case()
    disk(0, kind="network", protocol="rbd", source=f"vms/{SERVER}_disk", disk_format="raw", base=None)(case)
    case.found.hypervisor.stores.append("rbd")
    assert case.findings() == []


def test_a_port_whose_device_is_handed_over_as_it_is_has_no_address_in_the_guest() -> None:
    case = Case()
    case.instance.network_info[0].vnic_type = "direct-physical"
    case.guest.interfaces.clear()
    assert case.findings() == []


def test_a_share_with_a_space_in_its_name_is_found_below_its_mount() -> None:
    case = Case()
    case.found.hypervisor.mounts = [SHARE]
    case.guest.disks[2].source = f"{SHARE}/a b/volume"
    assert case.findings() == []


def test_a_nova_compute_that_runs_is_named() -> None:
    case = Case()
    assert running(case.found) == []
    case.found.processes.append(NovaProcess(17, "python3 /usr/bin/nova-compute"))
    (found,) = running(case.found)
    assert found.blocks and "process 17" in found.what


def test_what_was_found_is_the_same_after_it_was_json() -> None:
    host = found_host()
    assert msgspec.json.decode(msgspec.json.encode(host), type=FoundHost) == host
