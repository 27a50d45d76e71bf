"""The audit of ports that are not wired, and of ports that say that their guest is going elsewhere."""

from __future__ import annotations

from typing import Any

from causeway.context import admin_context
from causeway.devcloud.switches import Backend
from tests.functional.servers.audited_cloud import AuditedCloud


def announce(cloud: AuditedCloud, server: Any, host: str) -> str:
    """As a conductor does for a live migration, and dies. Returns the port's id."""
    (port,) = cloud.admin.network.ports(device_id=server.id)
    network, ours = cloud.parts.around.network, admin_context()
    network.announce_migration(ours, [network.show_port(ours, port.id)], host)
    return str(port.id)


def test_an_announcement_of_no_migration_is_undone(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    port = announce(cloud, server, "cell1-host9")
    assert "going to cell1-host9" in cloud.only("binding.announcement").message
    cloud.fixes("binding.announcement")
    assert "migrating_to" not in cloud.admin.network.get_port(port).binding_profile


def test_a_port_that_nobody_wires_is_reported(cloud: AuditedCloud) -> None:
    cloud.parts.devcloud.backends = dict.fromkeys(cloud.parts.computes, Backend.OVN)
    server = cloud.boot()
    assert cloud.audit().disagreements == []
    cloud.parts.devcloud.unpluggable_hosts = set(cloud.parts.computes)
    port = announce(cloud, server, "cell1-host9")
    cloud.fixes("binding.announcement")
    found = cloud.only("port.down", stale_after=0)
    assert (found.server, port in found.resource) == (server.id, True)
    cloud.parts.devcloud.unpluggable_hosts, cloud.parts.devcloud.backends = set(), {}
