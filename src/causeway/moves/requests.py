"""The functions with which the API requests a move.

`causeway.requests.acceptance` writes the request, and decides when it is accepted. Then these functions notify a conductor. If
they reach none, a conductor finds the move in the journal.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.hardware.port_devices import requests_of
from causeway.model import operations
from causeway.model.flavor import Flavor
from causeway.model.host import STORAGE, CellMapping, ComputeNode
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.states import MigrationStatus, PowerState, TaskState, VmState
from causeway.moves.memory import MEMORY_VERSION, MoveMemory
from causeway.requests import acceptance
from causeway.requests.of_servers import RequestServices, action_of, enter, notify_conductor
from causeway.store.api import finished_moves, migrations
from causeway.store.api.finished_moves import Finished
from causeway.store.cell import hosts
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


def request_resize(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    *,
    flavor: Flavor | None,
    host: str | None,
    cross_cell_allowed: bool,
    auto_disk_config: bool | None = None,
    reason: str | None = None,
    cell_uuid: str | None = None,
    node: ComputeNode | None = None,
    held_until: datetime | None = None,
    also: Callable[[sa.Connection], None] | None = None,
) -> Migration:
    """Requests a resize (with a flavor) or a cold migration (without one). Does not check it: the caller has done that.

    ``cell_uuid``: the cell in which the caller read the server; ``node``: that of its host, if the caller read it.
    ``held_until``: until then (UTC) the guest stays and runs, and only its disks are copied. ``also``: called in the transaction
    that accepts the request; if it raises, the request is refused.
    Raises StateChanged if another request has changed the server meanwhile.
    """
    cell, database = _home(services, instance, cell_uuid)
    node = node or next(iter(hosts.list_nodes(database, host=instance.host)), None)
    if node is None:
        raise errors.HostNotFound(f"Compute host {instance.host} could not be found.")
    memory = MoveMemory(
        migration_type="resize" if flavor is not None else "migration",
        source_cell=cell.uuid,
        source_host=instance.host or "",
        source_node=node.uuid,
        source_hypervisor=instance.node,
        source_zone=instance.availability_zone,
        old_flavor=instance.flavor,
        new_flavor=flavor or instance.flavor,
        old_vm_state=instance.vm_state,
        cross_cell_allowed=cross_cell_allowed,
        requested_host=host,
        runs_in_error=instance.vm_state is VmState.ERROR and instance.power_state is PowerState.RUNNING,
        has_ports=bool(instance.network_info),
        has_port_devices=bool(requests_of(instance)),
        migrates_to_same_host=bool(node.capabilities.get("supports_migrate_to_same_host")),
        source_storage=node.capabilities.get(STORAGE),
        held_until=held_until,
    )
    move = _move(context, str(uuids.uuid4()), instance.uuid, operations.RESIZE, memory, reason)
    migration = _migration_of(move, memory)
    changes: dict[str, Any] = {} if auto_disk_config is None else {"auto_disk_config": auto_disk_config}
    request = acceptance.Request(
        move,
        action_of(context, instance, "resize" if flavor else "migrate"),
        expected_task={None},
        expected_vm={instance.vm_state},
        changes={"task_state": acceptance.task_of(move), "progress": 0} | changes,
        on_acceptance=acceptance.all_of(also, partial(migrations.insert_in, migration=migration)),
    )
    enter(services, context, cell.uuid, request)
    notify_conductor(services, context, move)
    return migration


def _migration_of(move: Operation, memory: MoveMemory) -> Migration:
    """Returns the migration record of a resize. Users see the record as soon as the request is accepted."""
    return Migration(
        uuid=move.migration_uuid,
        instance_uuid=move.instance_uuid,
        migration_type=memory.migration_type,
        status=MigrationStatus.PRE_MIGRATING,
        source_compute=memory.source_host,
        source_node=memory.source_hypervisor,
        source_cell=memory.source_cell,
        old_flavor_id=memory.old_flavor.id,
        new_flavor_id=memory.new_flavor.id,
        user_id=move.user_id,
        project_id=move.project_id,
    )


def request_confirm(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    *,
    start: bool = True,
    cell_uuid: str | None = None,
    finished: Finished | None = None,
    also: Callable[[sa.Connection], None] | None = None,
) -> str:
    """Requests the confirm of a finished migration. Returns the move's id. Raises MigrationNotFinished if there is none.

    ``finished``: the migration, if the caller has read it. ``start`` False: for a server that is being deleted, whatever its
    state; the caller runs the move itself. ``also``: see `request_resize`.
    """
    cell, _database = _home(services, instance, cell_uuid)
    move = _follow_up(context, finished or finished_move(services.api, instance), operations.CONFIRM_RESIZE)
    request = acceptance.Request(
        move,
        action_of(context, instance, "confirmResize"),
        expected_task={None, TaskState.DELETING} if start else None,
        expected_vm={VmState.RESIZED} if start else None,
        on_acceptance=also,
    )
    enter(services, context, cell.uuid, request)
    if start:
        notify_conductor(services, context, move)
    return move.id


def request_revert(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    *,
    cell_uuid: str | None = None,
    finished: Finished | None = None,
    also: Callable[[sa.Connection], None] | None = None,
) -> None:
    """Requests the revert of a finished migration. Raises MigrationNotFinished if there is none.

    ``finished``: the migration, if the caller has read it. ``also``: see `request_resize`.
    """
    cell, _database = _home(services, instance, cell_uuid)
    move = _follow_up(context, finished or finished_move(services.api, instance), operations.REVERT_RESIZE)
    request = acceptance.Request(
        move,
        action_of(context, instance, "revertResize"),
        expected_task={None},
        expected_vm={VmState.RESIZED},
        changes={"task_state": acceptance.task_of(move)},
        on_acceptance=also,
    )
    enter(services, context, cell.uuid, request)
    notify_conductor(services, context, move)


def _home(services: RequestServices, instance: Instance, cell_uuid: str | None) -> tuple[CellMapping, Database]:
    """Returns the cell of a server: the given one if the caller has just read the server there, else that of its mapping.

    If the server has moved since the caller read it, the compare-and-swap on the old copy fails.
    """
    if cell_uuid is None:
        return services.cells.of_server(instance.uuid)
    return services.cells.mapping(cell_uuid), services.cells.database(cell_uuid)


def finished_move(api: Database, instance: Instance) -> Finished:
    """Returns the migration that waits for confirm or revert.

    Raises StateChanged if a confirm or revert is running, MigrationNotFinished if there is no such migration.
    """
    found = finished_moves.find(api, instance.uuid)
    if found is None:
        under_way = {MigrationStatus.CONFIRMING: "confirmed", MigrationStatus.REVERTING: "reverted"}
        for migration in migrations.search(api, instance_uuid=instance.uuid, statuses=list(under_way)):
            raise errors.StateChanged(
                f"The resize of instance {instance.uuid} is being {under_way[migration.status]}. Wait until that has ended."
            )
        raise errors.MigrationNotFinished(f"Migration for instance {instance.uuid} with status finished not found.")
    return found


def _follow_up(context: RequestContext, finished: Finished, recipe: str) -> Operation:
    """Returns a confirm or revert (``recipe``), which begins with the memory of the resize.

    Raises NotFound if the journal no longer has the resize.
    """
    migration = finished.migration
    if finished.move is None:
        raise errors.NotFound(f"The journal has no move of migration {migration.uuid}. Ask your cloud's administrator.")
    memory = msgspec.convert(finished.move.data, MoveMemory)
    memory.events, memory.guest = [], None
    return _move(context, migration.uuid, migration.instance_uuid, recipe, memory, None)


def _move(
    context: RequestContext,
    migration_uuid: str,
    instance_uuid: str,
    recipe: str,
    memory: MoveMemory,
    reason: str | None,
) -> Operation:
    return Operation(
        id=str(uuids.uuid4()),
        migration_uuid=migration_uuid,
        instance_uuid=instance_uuid,
        recipe=recipe,
        data=msgspec.to_builtins(memory),
        request_id=context.request_id,
        user_id=context.user_id,
        project_id=context.project_id,
        reason=reason,
        memory_version=MEMORY_VERSION,
    )
