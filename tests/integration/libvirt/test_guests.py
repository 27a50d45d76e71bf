"""A guest's life on one host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from causeway.errors import GuestFailed, VifPluggingFailed
from causeway.model.states import PowerState
from tests.integration.libvirt.lab_guests import Cloud, Net, image_lines


def test_spawned_guest_has_its_flavor_its_address_and_its_disk(cloud: Cloud, network: Net) -> None:
    port = network.port()
    guest = cloud.guest(vcpus=2, memory_mb=192, vifs=[port])

    said = guest.spawn().last("CAUSEWAY-GUEST")

    assert said["vcpus"] == "2"
    assert said["memory_mb"] == "192"
    assert said["mac"] == port.address
    assert said["ip"] == port.fixed_ips[0].address
    assert said["boot"] == "1"
    assert network.lab.network.ping(network.id, said["ip"]).answered
    facts = guest.driver.inspect(guest.uuid)
    assert (facts.power_state, facts.vcpus, facts.memory_mb, facts.has_disks) == (PowerState.RUNNING, 2, 192, True)
    assert guest.driver.list_guests()[guest.uuid] == PowerState.RUNNING


def test_stopped_guest_starts_again_from_its_disk(cloud: Cloud) -> None:
    guest = cloud.guest()
    first = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")

    guest.driver.power_off(guest.uuid, timeout=60)
    # One that is only switched off says nothing.
    assert "CAUSEWAY-SHUTDOWN" in guest.console().text
    assert guest.driver.inspect(guest.uuid).power_state == PowerState.SHUTDOWN
    guest.driver.power_off(guest.uuid, timeout=60)

    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING
    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING
    second = guest.wait_for_boot(2)
    assert second.last("CAUSEWAY-GUEST")["boot"] == "2"
    assert second.last("CAUSEWAY-MARKER", disk="vda")["first"] == first["first"]


@pytest.mark.parametrize("hard", [False, True])
def test_a_soft_reboot_shuts_down_and_a_hard_one_does_not(cloud: Cloud, hard: bool) -> None:
    guest = cloud.guest()
    guest.spawn()
    assert guest.driver.reboot(guest.spec(), hard=hard, timeout=60) == PowerState.RUNNING
    said = guest.wait_for_boot(2)
    assert ("CAUSEWAY-SHUTDOWN" in said.text) is not hard


def test_config_drive_names_the_guest_and_runs_user_data(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.config_drive = {
        "openstack/latest/meta_data.json": json.dumps({"hostname": "web-1"}).encode(),
        "openstack/latest/user_data": b"#!/bin/sh\necho user data of $(hostname)\n",
    }
    guest.spawn()
    guest.wait(lambda said: "CAUSEWAY-USER-DATA exit=0" in said.text)
    assert "user data of web-1" in guest.console().text


def test_a_guest_sees_in_its_firmware_which_kind_of_cloud_it_is_in(cloud: Cloud) -> None:
    guest = cloud.guest()
    reads = "$(cat /sys/class/dmi/id/product_name)/$(cat /sys/class/dmi/id/sys_vendor)/$(cat /sys/class/dmi/id/product_serial)"
    guest.config_drive = {
        "openstack/latest/meta_data.json": json.dumps({"hostname": "web-1"}).encode(),
        "openstack/latest/user_data": f"#!/bin/sh\necho machine: {reads}.\n".encode(),
    }
    guest.spawn()
    guest.wait(lambda said: "CAUSEWAY-USER-DATA exit=0" in said.text)
    assert f"machine: OpenStack Nova/OpenStack Foundation/{guest.uuid}." in guest.console().text


def test_a_guest_writes_to_volumes_it_started_with_and_got_later(cloud: Cloud) -> None:
    guest = cloud.guest()
    cold, hot = cloud.volume(guest, "/dev/vdb"), cloud.volume(guest, "/dev/vdc")
    guest.volumes = [cold]
    assert guest.spawn().last("CAUSEWAY-MARKER", disk="vdb")["lines"] == "1"

    guest.driver.check_volume_connectable(hot.connection_info or {})
    guest.driver.attach_volume(guest.uuid, hot)
    guest.driver.attach_volume(guest.uuid, hot)
    guest.wait(lambda said: "disk=vdc" in said.text)
    guest.driver.detach_volume(guest.uuid, hot)
    guest.driver.detach_volume(guest.uuid, hot)

    guest.driver.power_off(guest.uuid, timeout=60)
    guest.driver.power_on(guest.spec())
    guest.wait_for_boot(2)
    for volume, lines in ((cold, 2), (hot, 1)):
        assert volume.connection_info
        assert len(image_lines(cloud.path_of(volume))) == lines


def test_an_interface_works_from_its_attach_to_its_detach(cloud: Cloud, network: Net) -> None:
    guest = cloud.guest()
    guest.spawn()
    port = network.port()
    guest.driver.attach_interface(guest.uuid, port)
    guest.wait(lambda said: f"CAUSEWAY-NIC device=eth0 mac={port.address}" in said.text)
    assert network.lab.network.ping(network.id, port.fixed_ips[0].address).answered
    guest.driver.detach_interface(guest.uuid, port)
    assert network.lab.network.ping(network.id, port.fixed_ips[0].address, 1).received == 0


def test_guest_that_is_not_to_run_is_only_defined(cloud: Cloud) -> None:
    guest = cloud.guest()
    state = guest.driver.spawn(guest.spec(guest.new_disk(), power_on=False))
    assert state == guest.driver.inspect(guest.uuid).power_state == PowerState.SHUTDOWN
    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING
    assert guest.wait_for_boot().last("CAUSEWAY-GUEST")["boot"] == "1"


def test_spawn_waits_for_the_network_before_the_guest_runs(cloud: Cloud, network: Net) -> None:
    guest = cloud.guest(vifs=[network.port()])
    states = []

    @contextmanager
    def plugged() -> Iterator[None]:
        states.append(guest.driver.inspect(guest.uuid).power_state)
        yield
        states.append(guest.driver.inspect(guest.uuid).power_state)

    guest.driver.spawn(guest.spec(guest.new_disk()), vifs_plugged=plugged)
    assert [*states, guest.driver.inspect(guest.uuid).power_state] == [None, PowerState.PAUSED, PowerState.RUNNING]


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("how", ["started", "rebooted"])
def test_a_guest_waits_for_its_ports_if_its_host_was_off(
    cloud: Cloud, network: Net, monkeypatch: pytest.MonkeyPatch, how: str, is_gone: bool
) -> None:
    """What was plugged before is still wired, and nobody would say so once more."""
    guest = cloud.guest(vifs=[network.port()])
    guest.driver.spawn(guest.spec(guest.new_disk()))
    monkeypatch.setattr("causeway.virt.libvirt.driver.is_gone", lambda _vif: is_gone)
    states = []

    @contextmanager
    def plugged() -> Iterator[None]:
        yield
        states.append(guest.driver.inspect(guest.uuid).power_state)

    if how == "started":
        guest.driver.power_off(guest.uuid, 0)
        guest.driver.power_on(guest.spec(), vifs_plugged=plugged)
    else:
        guest.driver.reboot(guest.spec(), hard=True, timeout=0, vifs_plugged=plugged)
    assert states == ([PowerState.PAUSED] if is_gone else [])
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.RUNNING


def test_failed_spawn_leaves_nothing_behind(cloud: Cloud, network: Net) -> None:
    guest = cloud.guest(vifs=[network.port()])

    @contextmanager
    def never_plugged() -> Iterator[None]:
        yield
        raise VifPluggingFailed("the network service said nothing")

    with pytest.raises(VifPluggingFailed):
        guest.driver.spawn(guest.spec(guest.new_disk()), vifs_plugged=never_plugged)
    facts = guest.driver.inspect(guest.uuid)
    assert (facts.power_state, facts.has_disks) == (None, False)
    assert guest.uuid not in guest.driver.list_guests()


def test_destroying_what_is_not_there_is_a_success(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.driver.destroy(guest.uuid, [], [], destroy_disks=True)
    guest.driver.delete_disks(guest.uuid)
    guest.driver.delete_stashed_disks(guest.uuid)


def test_start_without_a_disk_says_so(cloud: Cloud) -> None:
    guest = cloud.guest()
    with pytest.raises(GuestFailed, match="no root disk"):
        guest.driver.power_on(guest.spec())


def test_host_reports_what_it_has(cloud: Cloud) -> None:
    driver = cloud.drivers[0]
    facts = driver.host_facts()
    assert facts.hypervisor_hostname == "cell1-host1"
    assert facts.hypervisor_type == "QEMU"
    assert facts.vcpus > 0 and facts.memory_mb > 0 and facts.local_gb > 0
    assert ["x86_64", "qemu", "hvm"] in facts.supported_instances
    assert "COMPUTE_NODE" in facts.traits
    assert driver.volume_connector()["host"] == "cell1-host1"


def test_diagnostics_show_a_guest_that_runs(cloud: Cloud, network: Net) -> None:
    port = network.port()
    guest = cloud.guest(vcpus=2, memory_mb=192, vifs=[port])
    guest.spawn()
    found = guest.driver.diagnostics(guest.uuid)
    assert (found.driver, found.memory_maximum, found.memory_used) == ("libvirt", 192, 192)
    assert [cpu.id for cpu in found.cpus] == [0, 1]
    assert all(cpu.time for cpu in found.cpus)
    (nic,) = found.nics
    assert nic.mac_address == port.address
    assert (nic.rx_packets or 0) + (nic.tx_packets or 0) > 0
    assert found.disks[0].device == "vda"
    assert (found.disks[0].read_bytes or 0) > 0
    guest.driver.power_off(guest.uuid, timeout=0)
    with pytest.raises(GuestFailed, match="does not run"):
        guest.driver.diagnostics(guest.uuid)


def test_a_crash_dump_interrupts_the_kernel_of_the_guest(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    guest.driver.trigger_crash_dump(guest.uuid)
    guest.wait(lambda console: "NMI received" in console.text)
    guest.driver.power_off(guest.uuid, timeout=0)
    with pytest.raises(GuestFailed, match="interrupt guest"):
        guest.driver.trigger_crash_dump(guest.uuid)


def test_a_guest_without_an_agent_gets_no_password(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    with pytest.raises(GuestFailed, match="hw_qemu_guest_agent"):
        guest.driver.set_password(guest.spec().instance, "root", "secret")
