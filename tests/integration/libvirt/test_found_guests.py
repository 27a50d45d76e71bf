"""A real hypervisor is looked at, and what is found agrees with the guests' records; nothing is changed by that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from causeway.adopt.hosts import RecordedHost, RecordedServer, compare
from causeway.model.adoption import Finding
from causeway.model.block_device import BlockDevice
from causeway.model.found_host import FoundHost, FoundHypervisor, FoundIdentity
from causeway.model.states import PowerState, VmState
from causeway.virt.lab.hosts import missing
from tests.integration.libvirt.lab_guests import Cloud, Guest, Net

if missing() is None:
    from causeway.virt.libvirt.look import look

HOST, NODE = "host1", "6f1c2f7e-7c0b-4a51-a6e4-2d1a4a9a3f10"


@pytest.fixture
def guest(cloud: Cloud, network: Net) -> Guest:
    found = cloud.guest(vifs=[network.port()])
    found.config_drive = {"openstack/latest/meta_data.json": b"{}"}
    found.spawn()
    return found


def found_at(guest: Guest) -> FoundHypervisor:
    driver = guest.driver
    return look(driver._connection._uri, driver._instances_dir, driver._instances_dir / "mnt")


def differences(guest: Guest, found: FoundHypervisor, **recorded: Any) -> list[Finding]:
    instance = replace(
        guest.instance,
        **{"vm_state": VmState.ACTIVE, "power_state": PowerState.RUNNING, "network_info": guest.vifs, **recorded},
    )
    root = BlockDevice("root", guest.uuid, "image", "local", boot_index=0)
    server = RecordedServer(instance, [root])
    host = FoundHost(HOST, identities=[FoundIdentity("/var/lib/nova/compute_id", NODE)], hypervisor=found)
    findings = compare(host, RecordedHost(HOST, NODE, None, [server]))
    # Other tests' guests and folders are there, too.
    return [finding for finding in findings if finding.subject == guest.uuid]


def definition(guest: Guest) -> str:
    text: str = guest.driver._connection.call("describe", lambda to: to.lookupByUUIDString(guest.uuid).XMLDesc())
    return text


def test_a_guest_is_found_as_it_is_recorded_whether_it_runs_or_not(guest: Guest) -> None:
    before = definition(guest)
    found = found_at(guest)
    (shown,) = [each for each in found.guests if each.uuid == guest.uuid]
    assert (shown.power_state, shown.vcpus, shown.memory_mb) == (PowerState.RUNNING, 1, 128)
    root = next(disk for disk in shown.disks if (disk.source or "").endswith("/disk"))
    assert root.size == 2**30 and root.base and root.is_base_there and not root.lack
    folder = next(each for each in found.folders if each.name == guest.uuid)
    assert {"disk": "qcow2", "disk.config": "raw"}.items() <= {
        file.name: file.disk_format for file in folder.files
    }.items()
    # Its base has Causeway's name, not Nova's.
    assert [finding.kind for finding in differences(guest, found)] == ["base.unknown"]
    assert definition(guest) == before
    guest.driver.power_off(guest.uuid, 0)
    stopped = {"vm_state": VmState.STOPPED, "power_state": PowerState.SHUTDOWN}
    assert [finding.kind for finding in differences(guest, found_at(guest), **stopped)] == ["base.unknown"]
    assert [finding.kind for finding in differences(guest, found_at(guest))] == ["power.stopped", "base.unknown"]


def test_a_guest_that_differs_from_its_record_is_found(guest: Guest) -> None:
    found = found_at(guest)
    kinds = {finding.kind for finding in differences(guest, found, network_info=[])}
    assert kinds == {"port.unknown", "base.unknown"}
    (guest.driver._disks.folder(guest.uuid) / "disk").rename(guest.driver._disks.folder(guest.uuid) / "elsewhere")
    assert "disk.unreadable" in {finding.kind for finding in differences(guest, found_at(guest))}
