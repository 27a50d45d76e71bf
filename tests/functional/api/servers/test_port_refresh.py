"""What `causeway.conductor.endpoints.shown_ports` writes when the network service says that it changed something."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from causeway.conductor.endpoints import shown_ports
from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.store.cell import instances

PORT, OTHER = "p0000000-0000-0000-0000-000000000001", "p0000000-0000-0000-0000-000000000002"
BEFORE = Vif(PORT, "fa:16:3e:00:00:01", "net", "demo-net", vif_type="ovs", profile={"a": "b"}, security_groups=["web"])


@pytest.fixture
def server(cloud: Any) -> Instance:
    made: Instance = cloud.server(network_info=[BEFORE])
    return made


def record(cloud: Any, server: Instance) -> Instance:
    return instances.get(cloud.cell("cell1"), server.uuid)


def test_only_what_is_shown_is_taken(cloud: Any, network: Any, server: Instance) -> None:
    """How it is bound is up to the operation that binds it."""
    address = FixedIp("10.0.0.9", "subnet", floating_ips=["192.0.2.9"])
    seen = replace(BEFORE, fixed_ips=[address], security_groups=["db"], network_label="new")
    elsewhere = replace(seen, vif_type="binding_failed", profile={}, active=True, mtu=9000)
    network.answers["network_info"] = [elsewhere, replace(BEFORE, id=OTHER)]
    shown_ports.refresh(cloud.services, server.uuid)
    assert record(cloud, server).network_info == [seen]


def test_what_the_service_does_not_show_stays(cloud: Any, network: Any, server: Instance) -> None:
    network.answers["network_info"] = []
    shown_ports.refresh(cloud.services, server.uuid)
    assert record(cloud, server) == server


def test_nothing_is_written_if_nothing_changed(cloud: Any, network: Any, server: Instance) -> None:
    network.answers["network_info"] = [BEFORE]
    shown_ports.refresh(cloud.services, server.uuid)
    assert record(cloud, server) == server


def test_what_others_write_meanwhile_is_looked_at_again(cloud: Any, network: Any, server: Instance) -> None:
    """The look may be older than what they wrote."""
    plugged = replace(BEFORE, id=OTHER)
    newest = [replace(BEFORE, security_groups=["newest"]), plugged]
    looks = []

    def look(_context: Any, seen: Instance, **_more: Any) -> list[Vif]:
        looks.append(seen.network_info)
        if len(looks) == 1:
            instances.update(cloud.cell("cell1"), server.uuid, network_info=[BEFORE, plugged])
            return [replace(BEFORE, security_groups=["old"])]
        return newest

    network.answers["network_info"] = look
    shown_ports.refresh(cloud.services, server.uuid)
    assert looks == [[BEFORE], [BEFORE, plugged]]
    assert record(cloud, server).network_info == newest


def test_a_server_that_is_gone_or_has_no_ports_is_fine(cloud: Any, network: Any) -> None:
    shown_ports.refresh(cloud.services, str(uuid.uuid4()))
    shown_ports.refresh(cloud.services, cloud.server().uuid)
    gone = cloud.server(network_info=[BEFORE])
    instances.soft_delete(cloud.cell("cell1"), gone.uuid)
    shown_ports.refresh(cloud.services, gone.uuid)
    assert network.calls == []
