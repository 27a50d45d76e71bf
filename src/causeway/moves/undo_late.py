"""Undoes the last call of a conductor that had lost its move without noticing (see `causeway.sagas.late`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from causeway import errors
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.sagas import ENDED, SagaState
from causeway.model.states import MigrationStatus
from causeway.moves.memory import MoveMemory
from causeway.moves.run import Run
from causeway.moves.steps.images import image_ids_of, parts_of
from causeway.moves.steps.reservations import delete_orphaned_attachments
from causeway.store.api import journal, migrations
from causeway.store.cell import block_devices, copies, instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

# Moves that claim resources, bind ports and copy records before their pivot. A revert only makes reservations, a confirm nothing.
MAKING = (*journal.RESIZES, operations.NEAR_LIVE_MIGRATION, operations.LIVE_ACROSS_CELLS)


@dataclass(frozen=True)
class _Server:
    """The server as it is now. ``waiting``: its resizes that wait for confirm or revert."""

    cell_uuid: str
    database: Database
    instance: Instance
    waiting: list[Migration]


def undo_late(run: Run) -> None:
    """Undoes what ``run`` did after another conductor had taken its move over, before the pivot. May be repeated.

    The server may have been confirmed, reverted, moved again or deleted since. Does nothing while another operation works on it,
    because everything that exists may belong to that operation.
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
    server = _server(run)
    if server is None:
        _of_deleted(run)
    elif move.recipe not in MAKING:
        _delete_reservations(run, server)
    elif any(each.uuid == move.migration_uuid for each in server.waiting):
        _of_waiting(run, server, msgspec.convert(ended.data, MoveMemory))
    else:
        _of_ended(run, server, was_undone=ended.state is not SagaState.DONE)
    LOG.info("Another conductor took over move %s; the calls that came too late were undone", move.id)


def _server(run: Run) -> _Server | None:
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
    return _Server(cell.uuid, database, instance, waiting)


def _of_waiting(run: Run, server: _Server, moved: MoveMemory) -> None:
    """Deletes what this conductor made for a resize that the other one has finished, and that waits for confirm or revert.

    That is everything that the other one does not know.
    """
    instance = server.instance
    run.unguarded.placement.claim(
        run.uuid, moved.destination.allocation_request.allocations, instance.project_id, instance.user_id
    )
    _delete_bindings(run, server)
    if moved.attachments:
        known = _attachments(server) | {id for pair in moved.attachments for id in (pair.source, pair.target)}
        # Only of these volumes: other reservations may belong to volumes that a user is attaching.
        delete_orphaned_attachments(run, known, of_volumes={pair.volume_id for pair in moved.attachments})
    if moved.is_cross_cell:
        _delete_images(run)


def _of_ended(run: Run, server: _Server, *, was_undone: bool) -> None:
    """Deletes what this conductor made for a move that is over. What a later resize of the server needs stays."""
    services, memory, instance = run.unguarded, run.memory, server.instance
    is_back = was_undone and not server.waiting and instance.host == memory.source_host
    # A late claim has given the migration what the server held. If the server is back and held nothing, the claim is released.
    services.placement.return_allocations(
        run.uuid, run.move.migration_uuid, source_provider=memory.source_node if is_back else None
    )
    _delete_bindings(run, server)
    _delete_reservations(run, server, connected_too=is_back and run.move.recipe == operations.LIVE_ACROSS_CELLS)
    if memory.is_cross_cell:
        if not server.waiting and server.cell_uuid != memory.target_cell:
            copies.hard_delete(services.cells.database(memory.target_cell), run.uuid, hidden_only=True)
        _delete_images(run)


def _of_deleted(run: Run) -> None:
    services = run.unguarded
    services.placement.release_migration(run.move.migration_uuid)
    services.placement.delete_allocations(run.uuid)
    delete_orphaned_attachments(run, set())
    if run.memory.is_cross_cell:
        _delete_images(run)


def _delete_reservations(run: Run, server: _Server, *, connected_too: bool = False) -> None:
    """Deletes the attachments of the move's volumes that neither the records nor a resize that waits has.

    ``connected_too``: otherwise connected ones stay, and an audit reports them: a source that is down may still have its guest.
    """
    # Other reservations may belong to volumes that a user is attaching.
    of_volumes = {pair.volume_id for pair in run.memory.attachments}
    if not of_volumes:
        return
    known = _attachments(server)
    for migration in server.waiting:
        resize = msgspec.convert(journal.resize_of(run.unguarded.api, migration.uuid).data, MoveMemory)
        known |= {pair.source for pair in resize.attachments}
    delete_orphaned_attachments(run, known, of_volumes, connected_too=connected_too)


def _attachments(server: _Server) -> set[str | None]:
    """Returns the attachments that the server's records name."""
    return {device.attachment_id for device in block_devices.of_instance(server.database, server.instance.uuid)}


def _delete_bindings(run: Run, server: _Server) -> None:
    """Deletes the bindings of the server's ports to the hosts that this conductor had chosen, except those that are in use."""
    memory = run.memory
    hosts = {*memory.bound_hosts, *([memory.dest_host] if memory.selection is not None else [])}
    in_use = {server.instance.host, *(migration.source_compute for migration in server.waiting)}
    for host in hosts - in_use:
        for vif in server.instance.network_info:
            run.unguarded.network.delete_binding(run.context, vif.id, host)


def _delete_images(run: Run) -> None:
    """Deletes the images through which this conductor had disks travel."""
    for image_id in [*image_ids_of(run), *parts_of(run)]:
        run.unguarded.images.delete(run.context, image_id)
