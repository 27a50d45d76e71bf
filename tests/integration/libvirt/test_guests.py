"""A guest's life on one host."""

from __future__ import annotations

from lab_guests import Cloud, Net

from causeway.model.states import PowerState


def test_spawned_guest_has_its_flavor_its_address_and_its_disk(cloud: Cloud, network: Net) -> None:
    port = network.port()
    guest = cloud.guest(vcpus=2, memory_mb=192, vifs=[port])

    said = guest.spawn().last("CAUSEWAY-GUEST")

    assert said["vcpus"] == "2"
    assert said["memory_mb"] == "192"
    assert said["mac"] == port.address
    assert said["ip"] == port.fixed_ips[0].address
    assert said["boot"] == "1"
    assert network.lab.network.ping(network.id, said["ip"]).lossless
    facts = guest.driver.inspect(guest.uuid)
    assert (facts.power_state, facts.vcpus, facts.memory_mb, facts.has_disks) == (PowerState.RUNNING, 2, 192, True)
    assert guest.driver.list_guests()[guest.uuid] == PowerState.RUNNING
