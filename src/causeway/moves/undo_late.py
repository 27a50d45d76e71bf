"""Undoes the last call of a conductor that had lost its move without noticing (see `causeway.sagas.late`)."""

from __future__ import annotations

import msgspec

from causeway import errors
from causeway.clients.rights import SERVICE
from causeway.devices import late
from causeway.devices.late import ServerNow
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.moves.destination import disk_gb_in_storage
from causeway.moves.memory import MoveMemory
from causeway.moves.move_run import Run
from causeway.moves.steps.images import image_ids_of, parts_of
from causeway.store.api import journal
from causeway.store.cell import copies

# Moves that claim resources, bind ports and copy records before their pivot. A revert only makes reservations, a confirm nothing.
MAKING = (*journal.RESIZES, operations.NEAR_LIVE_MIGRATION, operations.LIVE_MIGRATION)


def undo_late(run: Run) -> None:
    """Undoes what ``run`` did after another conductor had taken its move over, before the pivot. May be repeated."""
    ended = late.require_ended(run)
    server, memory = late.server_now(run), run.memory
    is_at_target = server is not None and memory.selection is not None and server.instance.host == memory.target_host
    late.delete_attachments(
        run,
        server,
        more_volumes=[pair.volume_id for pair in memory.attachments],
        connected_too=run.move.recipe == operations.LIVE_MIGRATION and not is_at_target,
    )
    if run.move.recipe not in MAKING:
        return
    if server is not None and any(each.uuid == run.move.migration_uuid for each in server.waiting):
        _claim_target(run, server.instance, msgspec.convert(ended.data, MoveMemory))
    else:
        disk_gb = disk_gb_in_storage(run.unguarded.api, run.uuid, memory)
        late.return_claim(run, server, memory.source_host, memory.source_node, disk_gb=disk_gb)
    if server is not None:
        late.delete_bindings(run, server, [*memory.bound_hosts, *([memory.target_host] if memory.selection else [])])
        if run.move.recipe == operations.LIVE_MIGRATION and memory.selection is not None:
            late.undo_announcements(run, server, memory.target_host)
    if memory.is_cross_cell:
        _delete_hidden_copy(run, server)
        for image_id in [*image_ids_of(run), *parts_of(run)]:
            run.unguarded.images.delete(run.context, image_id, called_as=SERVICE)


def _claim_target(run: Run, instance: Instance, moved: MoveMemory) -> None:
    """For a move that waits for confirm or revert. ``moved``: the memory of the conductor that has ended it.

    Its migration has what the server held at the source.
    """
    run.unguarded.placement.claim(
        run.uuid, moved.destination.allocation_request.allocations, instance.project_id, instance.user_id
    )


def _delete_hidden_copy(run: Run, server: ServerNow | None) -> None:
    """Deletes the copy of the records in the target's cell, unless the server lives there or a resize that waits needs a copy."""
    cells, target_cell = run.unguarded.cells, run.memory.target_cell
    try:
        home, _database = cells.of_server(run.uuid)
    except errors.ServerNotFound:
        # Deleted and archived.
        return
    if home.uuid != target_cell and (server is None or not server.waiting):
        copies.hard_delete(cells.database(target_cell), run.uuid, hidden_only=True)
