"""The network service binds ports in a way that hosts do not plug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openstack import exceptions

from causeway.devcloud.network import binding
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until

CLOUD = {"overrides": {"moves": {"patience": 0.0, "whole_tries": 1}}}
Foreign = Callable[..., None]


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Foreign:
    """From now on the network service binds ports so, on the hosts that are named."""
    connect = binding.connect

    def on(*hosts: str) -> None:
        def connected(of_cloud: Any, port: Any, row: Any) -> None:
            connect(of_cloud, port, row)
            if row.host in hosts:
                row.vif_type, row.vif_details = "agilio_ovs", {"port_filter": True}

        monkeypatch.setattr(binding, "connect", connected)

    return on


def test_a_server_is_built_on_a_host_that_plugs_its_port(cloud: Cloud, foreign: Foreign) -> None:
    foreign("cell1-host1")
    assert {cloud.boot(f"server{n}").compute_host for n in range(2)} == {"cell1-host2"}


def test_a_server_that_no_host_can_plug_is_not_built(cloud: Cloud, foreign: Foreign) -> None:
    foreign("cell1-host1", "cell1-host2")
    with pytest.raises(AssertionError, match="ERROR"):
        cloud.boot()
    (server,) = list(cloud.member.compute.servers())
    assert "in a way that the host does not plug" in str(cloud.show(server).fault)


def test_a_move_is_refused_before_its_source_is_touched(cloud: Cloud, foreign: Foreign) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    foreign("cell2-host1", "cell2-host2")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.reality(server) == before
    events = [name for name, _result in cloud.events(server, "resize")]
    assert not any("at_source" in name for name in events)


def test_a_live_migration_is_refused_before_the_guest_leaves(cloud: Cloud, foreign: Foreign) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    other = {"cell1-host1": "cell1-host2", "cell1-host2": "cell1-host1"}[cloud.show(server).compute_host]
    foreign(other)
    cloud.admin.compute.live_migrate_server(server.id, host=other, block_migration="auto")
    until(lambda: cloud.migration(server), lambda found: found.status in ("error", "failed"), "the refusal")
    cloud.settle()
    assert cloud.reality(server) == before


def test_a_port_is_not_attached(cloud: Cloud, foreign: Foreign) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    foreign("cell1-host1", "cell1-host2")
    with pytest.raises(exceptions.HttpException):
        cloud.member.compute.create_server_interface(server.id, net_id=cloud.network_id)
    cloud.settle()
    assert cloud.reality(server) == before
