"""Where servers are: what Placement and Neutron say, compared with the records, host by host and page by page."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from causeway.adopt.check.codes import found
from causeway.adopt.check.findings import Finding, host, server
from causeway.adopt.check.hosts import HostRecords, Hosts
from causeway.adopt.check.network_info import ports_in
from causeway.adopt.nova import NovaCloud, tables
from causeway.adopt.nova.database import Row
from causeway.adopt.nova.narrow import PLACES
from causeway.clients.placement import PlacementClient
from causeway.hardware.port_plugs import refusal_of

_BATCH = 1000
_SHOWN = 3


def of_placement(cloud: NovaCloud, hosts: Hosts, placement: PlacementClient) -> Iterator[Finding]:
    """Providers of all nodes and allocations of all servers. Raises what the client raises."""
    providers = {provider.uuid for provider in placement.list_providers()}
    for each in hosts.all():
        # A host with several nodes has a finding of its own.
        if len(each.nodes) != 1:
            continue
        node = each.nodes[0]["uuid"]
        if node not in providers:
            yield found(host(each.name), "provider_missing", f"Placement has no provider {node}.")
            continue
        yield from _of_host(cloud, each, placement.get_provider_allocations(node).keys())


def _of_host(cloud: NovaCloud, each: HostRecords, consumers: Collection[str]) -> Iterator[Finding]:
    strangers = set(consumers)
    where = (PLACES.c.deleted == 0, PLACES.c.host == each.name)
    for rows in each.cell.database.batches(PLACES, _BATCH, *where):
        for row in rows:
            strangers.discard(row["uuid"])
            if row["uuid"] not in consumers and not row["hidden"]:
                what = f"Placement has no allocation of it from the provider of {each.name}."
                yield found(server(row["uuid"], row["display_name"]), "allocation_missing", what)
    strangers -= _migrations_of(each, strangers)
    for uuid, row in servers_with(cloud, strangers).items():
        strangers.discard(uuid)
        what = f"It is on {row['host'] or 'no host'}, and has an allocation from the provider of {each.name}."
        yield found(server(uuid, row["display_name"]), "allocation_elsewhere", what)
    if strangers:
        shown = ", ".join(sorted(strangers)[:_SHOWN]) + ", ..." * (len(strangers) > _SHOWN)
        what = f"{len(strangers)} consumers are neither servers nor migrations: {shown}."
        yield found(host(each.name), "allocation_orphaned", what)


def _migrations_of(each: HostRecords, uuids: Collection[str]) -> set[str]:
    """Those of these that are migrations which have not ended: they hold what a server has at their source."""
    return set(each.cell.database.rows_of(tables.MIGRATIONS, "uuid", uuids)) if uuids else set()


def servers_with(cloud: NovaCloud, uuids: Collection[str]) -> dict[str, Row]:
    """The servers with these uuids in any cell; a record that is not hidden goes before one that is."""
    rows: dict[str, Row] = {}
    for cell in cloud.cells if uuids else ():
        for uuid, listed in cell.database.rows_of(PLACES, "uuid", uuids).items():
            if uuid not in rows or rows[uuid]["hidden"]:
                rows[uuid] = listed[0]
    return rows


def of_ports(cloud: NovaCloud, page: list[dict[str, Any]]) -> Iterator[Finding]:
    """Ports of servers: bound where these are, in a way that hosts can plug."""
    servers = servers_with(cloud, {str(port["device_id"]) for port in page})
    foreign = {
        port["device_id"]
        for port in page
        if port["device_id"] in servers and port.get("project_id") != servers[port["device_id"]]["project_id"]
    }
    recorded = _recorded_ports(cloud, foreign)
    for port in page:
        row = servers.get(port["device_id"])
        # Anybody may write any server's id into a port of their own.
        if row is None or (port["device_id"] in foreign and not _is_its(port, row, recorded)):
            continue
        subject, bound = server(row["uuid"], row["display_name"]), port.get("binding:host_id") or ""
        if row["host"] and bound != row["host"]:
            what = f"Port {port['id']} is bound to {bound or 'no host'}, and the server is on {row['host']}."
            yield found(subject, "port_host", what)
            continue
        reason = refusal_of(port.get("binding:vif_type"), port.get("binding:vif_details") or {})
        if reason is not None:
            yield found(subject, "port_plug", f"Port {port['id']}: {reason}.")


def _is_its(port: dict[str, Any], row: Row, recorded: Collection[str]) -> bool:
    return port.get("project_id") == row["project_id"] or port["id"] in recorded


def _recorded_ports(cloud: NovaCloud, uuids: Collection[str]) -> set[str]:
    """The ports in Nova's own records of these servers."""
    ports: set[str] = set()
    for cell in cloud.cells if uuids else ():
        for rows in cell.database.rows_of(tables.INSTANCE_INFO_CACHES, "instance_uuid", uuids).values():
            ports.update(*(ports_in(row["network_info"]) for row in rows))
    return ports


__all__ = ["of_placement", "of_ports", "servers_with"]
