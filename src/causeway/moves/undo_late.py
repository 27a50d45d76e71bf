"""Undoes the last call of a conductor that had lost its move without noticing (see `causeway.sagas.late`)."""

from __future__ import annotations

import logging

import msgspec

from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.sagas import ENDED, SagaState
from causeway.model.states import MigrationStatus
from causeway.moves.memory import MoveMemory
from causeway.moves.run import Run
from causeway.moves.steps.images import image_ids_of, parts_of
from causeway.moves.steps.reservations import delete_orphaned_attachments
from causeway.store.api import journal, mappings, migrations
from causeway.store.cell import block_devices, copies, instances

LOG = logging.getLogger(__name__)

RESIZES = journal.RESIZES
REVERTS = ("cross_cell_revert", "same_cell_revert")


def undo_late(run: Run) -> None:
    """Undoes what ``run`` did after another conductor had taken its move over, before the pivot. May be repeated.

    Does nothing if the server has another move by now, because everything that exists may belong to that move.
    """
    services, move = run.unguarded, run.move
    ended = journal.get(services.api, move.id)
    if ended.state not in ENDED:
        return
    if journal.active_of_server(services.api, run.uuid) is not None:
        LOG.warning(
            "Another conductor took over move %s; run `causeway audit` to see whether something of it is orphaned",
            move.id,
        )
        return
    waiting = migrations.search(services.api, instance_uuid=run.uuid, statuses=[MigrationStatus.FINISHED])
    if ended.state is SagaState.DONE:
        if move.recipe in RESIZES and any(each.uuid == move.migration_uuid for each in waiting):
            _of_resized(run, msgspec.convert(ended.data, MoveMemory))
        else:
            _of_done(run, waiting)
    elif move.recipe in (*RESIZES, operations.NEAR_LIVE_MIGRATION, operations.LIVE_ACROSS_CELLS) and not waiting:
        _of_resize(run)
    elif move.recipe in REVERTS:
        # A revert makes nothing else before its pivot.
        _delete_reservations(run, waiting)
    LOG.info("Another conductor took over move %s; the calls that came too late were undone", move.id)


def _of_resized(run: Run, moved: MoveMemory) -> None:
    """Deletes what this conductor made for a resize that the other one has finished: everything that the other does not know."""
    services = run.unguarded
    _cell, database = services.cells.of_server(run.uuid)
    instance = instances.get(database, run.uuid)
    services.placement.claim(
        run.uuid, moved.destination.allocation_request.allocations, instance.project_id, instance.user_id
    )
    _delete_bindings(run, instance, {moved.source_host, moved.dest_host})
    if moved.attachments:
        known = {device.attachment_id for device in block_devices.of_instance(database, run.uuid)}
        known |= {id for pair in moved.attachments for id in (pair.source, pair.target)}
        # Only of these volumes: other reservations may belong to volumes that a user is attaching.
        delete_orphaned_attachments(run, known, of_volumes={pair.volume_id for pair in moved.attachments})
    if moved.is_cross_cell:
        _delete_images(run)


def _of_done(run: Run, waiting: list[Migration]) -> None:
    """Deletes what this conductor made for a move that the other one has finished, and whose copies nobody needs any more."""
    _delete_reservations(run, waiting)
    if not waiting:
        _cell, database = run.unguarded.cells.of_server(run.uuid)
        instance = instances.get(database, run.uuid)
        _delete_bindings(run, instance, {instance.host})
    if run.memory.is_cross_cell:
        _delete_images(run)


def _delete_reservations(run: Run, waiting: list[Migration]) -> None:
    """Deletes the reservations of the move's volumes that neither the records nor a resize that is ``waiting`` has.

    Connected attachments stay, and an audit reports them: a source that is down may still have its guest.
    """
    of_volumes = _volumes_of(run)
    if not of_volumes:
        return
    _cell, database = run.unguarded.cells.of_server(run.uuid)
    known = {device.attachment_id for device in block_devices.of_instance(database, run.uuid)}
    for migration in waiting:
        resize = msgspec.convert(journal.resize_of(run.unguarded.api, migration.uuid).data, MoveMemory)
        known |= {pair.source for pair in resize.attachments}
    delete_orphaned_attachments(run, known, of_volumes)


def _volumes_of(run: Run) -> set[str]:
    """Returns the volumes that the move has reserved. Other reservations may belong to volumes that a user is attaching."""
    return {pair.volume_id for pair in run.memory.attachments}


def _of_resize(run: Run) -> None:
    services, memory = run.unguarded, run.memory
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
        _delete_images(run)


def _of_living(run: Run, instance: Instance, devices: list[BlockDevice]) -> None:
    services, memory = run.unguarded, run.memory
    services.placement.return_allocations(run.uuid, run.move.migration_uuid, source_provider=memory.source_node)
    _delete_bindings(run, instance, {instance.host})
    if any(device.is_volume for device in devices):
        at_once = run.move.recipe == operations.LIVE_ACROSS_CELLS
        known = {device.attachment_id for device in devices}
        delete_orphaned_attachments(run, known, of_volumes=_volumes_of(run), connected_too=at_once)


def _delete_bindings(run: Run, instance: Instance, in_use: set[str | None]) -> None:
    """Deletes the bindings of the server's ports to the hosts that this conductor had chosen, except those ``in_use``."""
    memory = run.memory
    hosts = {*memory.bound_hosts, *([memory.dest_host] if memory.selection is not None else [])}
    for host in hosts - in_use:
        for vif in instance.network_info:
            run.unguarded.network.delete_binding(run.context, vif.id, host)


def _delete_images(run: Run) -> None:
    """Deletes the images through which this conductor had disks travel."""
    for image_id in [*image_ids_of(run), *parts_of(run)]:
        run.unguarded.images.delete(run.context, image_id)


def _of_deleted(run: Run) -> None:
    services = run.unguarded
    services.placement.release_migration(run.move.migration_uuid)
    services.placement.delete_allocations(run.uuid)
    delete_orphaned_attachments(run, set())
