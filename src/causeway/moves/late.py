"""What is done about the last thing that a slow conductor did.

A conductor that was only slow (its machine was suspended, say) looks whether a move is still its own before it touches
anything (`Run.hold`). But it may have been stopped between that look and the call to a service that follows; services around
us know nothing of epochs. So one call can take effect after another conductor has undone the move. Whoever finds out that a
move was taken from it therefore waits for the move's end and, if it was undone, takes back what came too late.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.moves import MOVE_ENDED, MoveState
from causeway.model.states import MigrationStatus
from causeway.moves.run import Run
from causeway.moves.steps.prepare import image_id_of
from causeway.moves.steps.reservations import drop_strays
from causeway.store.api import journal, mappings, migrations
from causeway.store.cell import block_devices, copies, instances

LOG = logging.getLogger(__name__)

# How many leases the other conductor has to end the move, before it is left to `causeway audit`.
PATIENCE = 10


def take_back(run: Run) -> None:
    """Takes back what ``run``, whose move was taken over before its pivot, did too late. All of it may be repeated.

    The server is left alone if it has another move by now, or if it waits for confirm or revert: what is there may be theirs.
    """
    services, memory = run.unguarded, run.memory
    lease, move = services.conf.moves.lease, run.move
    for _pause in range(PATIENCE * 4):
        if journal.get(services.api, move.id).state in MOVE_ENDED:
            break
        if services.stopping.wait(lease / 4):
            return
    if journal.get(services.api, move.id).state is not MoveState.FAILED:
        return
    waiting = migrations.search(services.api, instance_uuid=run.uuid, statuses=[MigrationStatus.FINISHED])
    if waiting or journal.active_of_server(services.api, run.uuid) is not None:
        LOG.warning("Move %s was lost while it acted; `causeway audit` tells whether something is left of it", move.id)
        return
    if mappings.get(services.api, run.uuid).cell_uuid != memory.source_cell:
        return
    database = services.cells.database(memory.source_cell)
    instance = instances.find(database, run.uuid)
    if instance is None:
        _of_deleted(run)
    else:
        _of_living(run, instance, block_devices.of_instance(database, run.uuid))
    if memory.is_cross_cell:
        copies.hard_delete(services.cells.database(memory.target_cell), run.uuid, hidden_only=True)
    services.images.delete(run.context, image_id_of(run))
    LOG.info("Move %s was lost while it acted; what came too late was taken back", move.id)


def _of_living(run: Run, instance: Instance, devices: list[BlockDevice]) -> None:
    services, memory = run.unguarded, run.memory
    services.placement.give_back(run.uuid, run.move.migration_uuid)
    hosts = {*memory.bound_hosts, *([memory.dest_host] if memory.selection is not None else [])}
    for host in hosts - {instance.host}:
        for vif in instance.network_info:
            services.network.delete_binding(run.context, vif.id, host)
    if any(device.is_volume for device in devices):
        drop_strays(run, {device.attachment_id for device in devices})


def _of_deleted(run: Run) -> None:
    services = run.unguarded
    services.placement.drop_migration(run.move.migration_uuid)
    services.placement.delete_allocations(run.uuid)
    drop_strays(run, set())


def is_to_be_taken_back(run: Run) -> bool:
    """Whether the move was one that makes something at its target, and had not come to its pivot."""
    return not run.move.pivoted and run.move.recipe in ("resize", "cross_cell_resize", "same_cell_resize")


def try_to_take_back(run: Run) -> None:
    """`take_back`; what it can't do is left to `causeway audit`."""
    if not is_to_be_taken_back(run):
        return
    try:
        take_back(run)
    except errors.CausewayError as failure:
        LOG.warning("Move %s: what came too late is still there: %s %s", run.move.id, failure.message, failure.details)
