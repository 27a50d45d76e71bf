"""What a slow conductor made for an operation that another one has ended, and how it is deleted (see `causeway.sagas.late`).

The server may have been confirmed, reverted, moved, shelved or deleted since. What its records or its waiting resizes name stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from causeway import errors
from causeway.clients.port_owners import PortOwner
from causeway.devices.device_records import noted_by_operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.states import MigrationStatus
from causeway.running.server_run import ServerRun
from causeway.store.api import journal, migrations
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerNow:
    """A server as it is now. ``waiting``: its resizes that wait for confirm or revert."""

    cell_uuid: str
    database: Database
    instance: Instance
    devices: list[BlockDevice]
    waiting: list[Migration]


def require_ended(run: ServerRun[Any]) -> Operation:
    """Returns the operation as the other conductor has ended it.

    Raises OperationUnderWay if another operation works on the server: everything may belong to that one until it ends.
    """
    services, saga = run.unguarded, run.saga
    other = journal.active_of_server(services.api, run.uuid)
    if other is not None:
        raise errors.OperationUnderWay(f"Operation {other.id} ({other.recipe}) works on server {run.uuid}.")
    LOG.info("Another conductor took over operation %s; the calls that came too late are undone", saga.id)
    return journal.get(services.api, saga.id)


def server_now(run: ServerRun[Any]) -> ServerNow | None:
    """Returns None if the server was deleted."""
    services = run.unguarded
    try:
        cell, database = services.cells.of_server(run.uuid)
    except errors.ServerNotFound:
        return None
    instance = instances.find(database, run.uuid)
    if instance is None:
        return None
    waiting = migrations.search(services.api, instance_uuid=run.uuid, statuses=[MigrationStatus.FINISHED])
    return ServerNow(cell.uuid, database, instance, block_devices.of_instance(database, run.uuid), waiting)


def release_claim(run: ServerRun[Any], server: ServerNow | None) -> None:
    """Releases what was claimed for a server that was deleted, or is on no host."""
    if server is None or server.instance.host is None:
        run.unguarded.placement.delete_allocations(run.uuid)


def return_claim(
    run: ServerRun[Any],
    server: ServerNow | None,
    source_host: str,
    source_node: str,
    *,
    from_dead_host: bool = False,
    disk_gb: int | None = None,
) -> None:
    """Returns to the server what a claim that came too late has given to its migration; releases it if the server has no host.

    ``source_host``, ``source_node``: where the server was before, and the uuid of its compute node. ``from_dead_host``: the
    migration has what the server holds at its dead host, which may still have the guest and disks. ``disk_gb``: see
    `PlacementClient.return_allocations`.
    """
    placement, migration = run.unguarded.placement, run.saga.migration_uuid
    holds_source = placement.get_allocations(migration).holds_on(source_node)
    if server is None or server.instance.host is None:
        release_claim(run, server)
        if not (from_dead_host and holds_source):
            placement.release_migration(migration)
        return
    is_back = server.instance.host == source_host
    if is_back or not holds_source:
        source_provider = source_node if is_back and not server.waiting else None
        placement.return_allocations(run.uuid, migration, source_provider=source_provider, disk_gb=disk_gb)


def delete_attachments(
    run: ServerRun[Any], server: ServerNow | None, *, more_volumes: Iterable[str] = (), connected_too: bool = False
) -> None:
    """Deletes attachments that neither the server's records nor moves name, of its volumes and of ``more_volumes``.

    A user may be attaching other volumes. Of a deleted server all are deleted. ``connected_too``: no guest of the server is where
    the operation connected volumes; otherwise connected ones stay, because their host may use the same connection.
    """
    services, volumes = run.unguarded, {*_volumes_of(server), *more_volumes}
    if server is not None and not volumes:
        return
    known: set[str | None] = set() if server is None else {device.attachment_id for device in server.devices}
    known |= noted_by_operations(services, run.uuid)
    for found in services.volumes.attachments_of_server(run.context, run.uuid):
        is_late = found.id not in known and (server is None or found.volume_id in volumes)
        if is_late and (connected_too or not found.is_connected):
            services.volumes.delete_attachment(run.context, found.id)


def _volumes_of(server: ServerNow | None) -> set[str]:
    """The volumes that a server has by now. Not one that a user is attaching: it has no attachment in the records yet."""
    if server is None:
        return set()
    return {device.volume_id for device in server.devices if device.volume_id and device.attachment_id}


def delete_bindings(run: ServerRun[Any], server: ServerNow, hosts: Iterable[str]) -> None:
    """Deletes the bindings of the server's ports to hosts that it neither is on nor may return to."""
    in_use = {server.instance.host, *(migration.source_compute for migration in server.waiting)}
    for host in set(hosts) - in_use:
        for vif in server.instance.network_info:
            run.unguarded.network.delete_binding(run.context, vif.id, host)


def undo_announcements(run: ServerRun[Any], server: ServerNow, host: str) -> None:
    """Deletes from the profiles of the server's ports that its guest is going to a host."""
    ports = run.unguarded.network.ports_of_server(run.context, PortOwner.of(server.instance))
    run.unguarded.network.undo_announcement(run.context, ports, host)
