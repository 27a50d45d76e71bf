"""Requests live migrations: refuses servers that no hypervisor can migrate live, and writes the operation.

To a host of another cell it begins as a near-live migration. If the hypervisors reach one another, it continues as a live one.
"""

from __future__ import annotations

import dataclasses
import uuid as uuids
from collections.abc import Callable

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.hardware.port_devices import requests_of
from causeway.model import operations, server_actions
from causeway.model.host import ATTACHES_PORT_DEVICES, STORAGE, ComputeNode
from causeway.model.instance import Instance
from causeway.model.live_obstacles import live_obstacle
from causeway.model.migration import LIVE_MIGRATION, Migration
from causeway.model.server_actions import ServerAction
from causeway.model.states import MigrationStatus, VmState
from causeway.moves.memory import MEMORY_VERSION, MoveMemory
from causeway.requests.asking import ask
from causeway.requests.of_servers import RequestServices
from causeway.store.cell import hosts


def check_movable(instance: Instance) -> None:
    """Raises BadRequest for a server that can't be migrated live."""
    what = live_obstacle(
        instance.flavor, instance.image_meta, (vif.vnic_type for vif in instance.network_info), instance.vm_state
    )
    if what is not None:
        raise errors.BadRequest(f"Operation 'live-migration' not supported for {what} ({instance.uuid}).")


def request_live_migration(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    cell_uuid: str,
    *,
    host: str | None,
    leaves_cell: bool,
    may_leave_cell: bool = False,
    forced: bool = False,
    block_migration: bool | None = None,
    disk_over_commit: bool | None = None,
    event: str = "conductor_live_migrate_instance",
    action: ServerAction = server_actions.LIVE_MIGRATION,
    reason: str | None = None,
    also: Callable[[sa.Connection], None] | None = None,
) -> Migration:
    """Requests a live migration. The caller has checked everything else. ``cell_uuid``: where the caller read the server.

    ``host``: the target; None to have one chosen. ``leaves_cell``: the target is in another cell; ``may_leave_cell``: another
    cell will do if no host of its own takes it. ``event``: its name in the server's history. ``action``: says in which states
    it is allowed. ``also``: see `causeway.requests.asking.ask`. Raises StateChanged if another request was quicker, and
    HostNotFound if the server's host has no compute node.
    """
    node = next(iter(hosts.list_nodes(services.cells.database(cell_uuid), host=instance.host)), None)
    if node is None:
        raise errors.HostNotFound(f"Compute host {instance.host} could not be found.")
    if requests_of(instance) and not node.capabilities.get(ATTACHES_PORT_DEVICES):
        raise errors.BadRequest(
            f"Server {instance.uuid} has SR-IOV ports, which its host {instance.host} does not detach from a running guest."
        )
    if leaves_cell:
        recipe = operations.NEAR_LIVE_MIGRATION
        memory = memory_of(instance, cell_uuid, node, host=host)
    else:
        recipe = operations.LIVE_MIGRATION
        memory = dataclasses.replace(
            memory_of(instance, cell_uuid, node, host=host),
            cross_cell_allowed=False,
            forced=forced,
            block_migration=block_migration,
            disk_over_commit=disk_over_commit,
            may_leave_cell=may_leave_cell and host is None and block_migration is not False,
            event=event,
        )
    migration = _migration_of(context, instance, cell_uuid, dest_compute=host if forced else None)
    ask(
        services,
        context,
        instance,
        cell_uuid,
        action,
        recipe,
        memory,
        migration=migration,
        memory_version=MEMORY_VERSION,
        reason=reason,
        also=also,
        progress=0,
    )
    return migration


def _migration_of(
    context: RequestContext, instance: Instance, cell_uuid: str, *, dest_compute: str | None = None
) -> Migration:
    """The migration record of a live migration, visible from its acceptance on. ``dest_compute``: the host, if it was forced."""
    return Migration(
        uuid=str(uuids.uuid4()),
        user_id=context.user_id,
        project_id=context.project_id,
        instance_uuid=instance.uuid,
        migration_type=LIVE_MIGRATION,
        status=MigrationStatus.ACCEPTED,
        source_compute=instance.host,
        source_cell=cell_uuid,
        dest_compute=dest_compute,
        dest_cell=cell_uuid,
        old_flavor_id=instance.flavor.id,
        new_flavor_id=instance.flavor.id,
    )


def memory_of(instance: Instance, cell_uuid: str, node: ComputeNode, *, host: str | None) -> MoveMemory:
    """Returns the memory of a new live or near-live migration to another cell.

    ``cell_uuid``, ``node``: where the server is. ``host``: the target; None for any host of another cell.
    """
    return MoveMemory(
        migration_type=LIVE_MIGRATION,
        source_cell=cell_uuid,
        source_host=instance.host or "",
        source_node=node.uuid,
        source_hypervisor=instance.node,
        source_zone=instance.availability_zone,
        old_flavor=instance.flavor,
        new_flavor=instance.flavor,
        old_vm_state=instance.vm_state,
        cross_cell_allowed=True,
        keeps_memory=True,
        # A suspended guest is off anyway.
        source_storage=node.capabilities.get(STORAGE),
        may_go_live=instance.vm_state is not VmState.SUSPENDED,
        requested_host=host,
        has_ports=bool(instance.network_info),
        has_port_devices=bool(requests_of(instance)),
    )
