"""What a host keeps for a server stays its own when its guest is made anew in its place: rescued, unrescued, restored."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.audit import audit_embedded
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.pinned_cloud import OVERRIDES, guest_topology, held, pinned
from tests.functional.servers.rescued import ask, rescued, unrescued

CLOUD = {"overrides": {**OVERRIDES, "DEFAULT": {"reclaim_instance_interval": 3600}}}
pytestmark = pytest.mark.embedded("looks into hosts")


def held_by(cloud: Cloud, server: Any) -> list[Any]:
    """Its record, its guest and its host have the same of it."""
    record = cloud.record(server, "cell1")
    assert record.numa_topology is not None and record.pci_devices
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    found = [guest_topology(cloud, server), held(cloud, str(record.host)), record.numa_topology]
    return [*found, [device.address for device in record.pci_devices]]


def deleted(cloud: Cloud, server: Any) -> None:
    assert ask(cloud.admin, server, "forceDelete").status_code == 202
    cloud.settle()


def booted(cloud: Cloud) -> Any:
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    cloud.settle()
    return server


def test_a_rescued_server_keeps_what_it_holds(cloud: Cloud) -> None:
    server = booted(cloud)
    before = held_by(cloud, server)
    rescued(cloud, server)
    assert held_by(cloud, server) == before
    unrescued(cloud, server)
    assert held_by(cloud, server) == before
    deleted(cloud, server)


def test_a_restored_server_keeps_what_it_holds(cloud: Cloud) -> None:
    server = booted(cloud)
    before = held_by(cloud, server)
    cloud.member.compute.delete_server(server.id)
    cloud.wait(server, "SOFT_DELETED")
    assert ask(cloud.admin, server, "restore").status_code == 202
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert held_by(cloud, server) == before
    deleted(cloud, server)
