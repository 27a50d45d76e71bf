"""Reads the state of requested moves from the journal and the migrations: a few statements for all servers of a drain.

The id of a request finds its operation, and operations that replaced it: a live migration that found no host in its cell
continues as near-live, and an operation that was rolled back for a passing reason is tried once more. After the operation has
ended, the migration says what has become of the move, whoever confirms or reverts it.
"""

from __future__ import annotations

from datetime import timedelta

from causeway import errors
from causeway.drains import concluding
from causeway.drains.look import Look
from causeway.drains.pace import Load, is_due, load_of
from causeway.model.drains import Afterwards, DrainServer, DrainServerState, DrainState, How
from causeway.model.migration import Migration
from causeway.model.operations import (
    CONFIRM_RESIZE,
    MOVE_RECORDS,
    REVERT_RESIZE,
    SHELVE_OFFLOAD,
    OperationBrief,
    present_name,
)
from causeway.model.sagas import ENDED, SagaState
from causeway.model.states import MigrationStatus, VmState
from causeway.moves.pauses import stood_still
from causeway.store.api import drains as store
from causeway.store.api import journal, migrations
from causeway.store.database import utcnow

_FOLLOWED = frozenset(
    {
        DrainServerState.ASKED,
        DrainServerState.MOVED,
        DrainServerState.CONFIRMING,
        DrainServerState.REVERTING,
    }
)
# After these operations the server is on no host: then its records move, and an evacuated server is started.
_FIRST_PARTS = {How.RECORDS: (SHELVE_OFFLOAD,), How.EVACUATE: (SHELVE_OFFLOAD, MOVE_RECORDS)}
# In these states nothing new begins, and failed moves are not tried again.
_ENDING = (DrainState.CANCELLING, DrainState.ROLLING_BACK)


def follow(look: Look) -> None:
    """Updates each server whose move is running, and requests the next operation: confirm, revert, or an unwanted move's end."""
    followed = [server for server in look.servers if server.state in _FOLLOWED]
    requests = {server.instance_uuid: server.request_id for server in followed if server.request_id is not None}
    asked = journal.of_requests(look.services.api, requests)
    uuids = {operation.migration_uuid for found in asked.values() for operation in found}
    known = migrations.of_uuids(look.services.api, uuids)
    load = load_of(look.servers)
    for server in followed:
        operations = asked.get(server.request_id or "", [])
        migration = known.get(operations[-1].migration_uuid) if operations else None
        with look.apart(server):
            _follow(look, server, operations, migration)
            _confirm_or_revert(look, server, operations, migration, load)


def _follow(look: Look, server: DrainServer, operations: list[OperationBrief], migration: Migration | None) -> None:
    if not operations:
        _handle_unknown_request(look, server)
    elif any(operation.state not in ENDED for operation in operations):
        _note_hold(look, server, operations[-1])
        # A server that has left a dead host can't return to it, so the operation that starts it is not cancelled.
        starts_at_target = server.how is How.EVACUATE and operations[-1].recipe != SHELVE_OFFLOAD
        if look.drain.undo and look.drain.state in _ENDING and not starts_at_target:
            concluding.cancel_running(look, operations)
    elif all(operation.state is SagaState.FAILED for operation in operations):
        _handle_failure(look, server, operations[-1])
    elif operations[-1].recipe in _FIRST_PARTS.get(server.how or How.GENTLEST, ()):
        look.change(server, state=DrainServerState.PENDING, request_id=None)
    elif migration is None:
        look.change(server, state=DrainServerState.DONE, **measured(look, operations), **sent(look, server))
    else:
        if server.took is None:
            look.change(server, **measured(look, operations), **sent(look, server))
        _handle_end(look, server, migration)


def measured(look: Look, operations: list[OperationBrief]) -> dict[str, float | None]:
    """Returns how many seconds an ended move took, and how long its guest stood still, in all of its attempts."""
    began, ended = operations[0].started_at, operations[-1].ended_at
    took = (ended - began).total_seconds() if began is not None and ended is not None else None
    still: list[float | None] = []
    for operation in operations:
        whole = journal.get(look.services.api, operation.id)
        runs = whole.data.get("old_vm_state") not in (VmState.STOPPED.value, VmState.SUSPENDED.value)
        steps = journal.steps(look.services.api, operation.id) if runs else []
        still.append(stood_still(operation.recipe, operation.state, steps) if runs else 0.0)
    counted = [seconds for seconds in still if seconds is not None]
    return {"took": took, "stood_still": sum(counted) if len(counted) == len(still) else None}


def sent(look: Look, server: DrainServer) -> dict[str, int]:
    """Returns the bytes that an ended move sent, in place of those that its flavor's disks could have had."""
    found = store.bytes_sent(look.services.api, {server.instance_uuid: server.request_id or ""})
    return {"bytes": count} if (count := found.get(server.instance_uuid)) else {}


def _note_hold(look: Look, server: DrainServer, operation: OperationBrief) -> None:
    """Notes whether a server's disks are copied and it waits for its window, so that other servers may begin to copy."""
    held = operation.state is SagaState.RUNNING and (operation.error or {}).get("code") == errors.Held.code
    why = operation.error["message"] if held and operation.error is not None else None
    if server.state is DrainServerState.ASKED and server.why != why:
        look.change(server, why=why)


def _handle_unknown_request(look: Look, server: DrainServer) -> None:
    """Handles a request that is not in the journal: it was never accepted, or its server was deleted and archived."""
    if look.is_gone(server):
        look.pass_over(server, "It was deleted.")
    elif server.state is not DrainServerState.ASKED:
        return
    elif server.attempts > look.request.retries:
        look.change(server, state=DrainServerState.FAILED)
    else:
        look.change(server, state=DrainServerState.PENDING, request_id=None)


def _handle_failure(look: Look, server: DrainServer, operation: OperationBrief) -> None:
    why = str((operation.error or {}).get("message") or "It failed.")
    if look.is_gone(server):
        look.pass_over(server, "It was deleted.")
    elif look.drain.state in _ENDING:
        look.change(server, state=DrainServerState.PENDING, why=why)
    else:
        look.fail(server, why)


def _handle_end(look: Look, server: DrainServer, migration: Migration) -> None:
    """Handles a move whose operation has ended: its migration says what has become of the move."""
    match migration.status:
        case MigrationStatus.COMPLETED | MigrationStatus.CONFIRMED:
            _set_state(look, server, DrainServerState.DONE, migration)
        case MigrationStatus.FINISHED:
            if server.state in (DrainServerState.CONFIRMING, DrainServerState.REVERTING):
                _handle_failed_follow_up(look, server, migration)
            else:
                _set_state(look, server, DrainServerState.MOVED, migration)
        case MigrationStatus.CONFIRMING:
            _set_state(look, server, DrainServerState.CONFIRMING, migration)
        case MigrationStatus.REVERTING:
            _set_state(look, server, DrainServerState.REVERTING, migration)
        case MigrationStatus.REVERTED if look.drain.state is DrainState.ROLLING_BACK:
            _set_state(look, server, DrainServerState.REVERTED, migration)
        case MigrationStatus.REVERTED:
            look.pass_over(server, "Its move was reverted by somebody else: it is where it was.")
        case MigrationStatus.ERROR | MigrationStatus.FAILED | MigrationStatus.CANCELLED:
            look.fail(server, f"Its migration is {migration.status.value}.", for_good=True)
        case _:
            # The migration's status is not final yet: the next look reads it again.
            return


def _set_state(look: Look, server: DrainServer, state: DrainServerState, migration: Migration) -> None:
    if server.state is state:
        return
    if state is DrainServerState.DONE and look.is_gone(server):
        # Deleting the server confirmed the move.
        look.pass_over(server, "It was deleted.")
        return
    look.change(
        server,
        state=state,
        target_host=migration.dest_compute,
        target_cell=look.cell_name(migration.dest_cell),
        why=None,
        not_before=None,
    )


def _handle_failed_follow_up(look: Look, server: DrainServer, migration: Migration) -> None:
    """Handles a confirm or revert that failed. A confirm is tried again each time, a revert as often as a move."""
    what = "revert" if server.state is DrainServerState.REVERTING else "confirm"
    recipe = REVERT_RESIZE if what == "revert" else CONFIRM_RESIZE
    moves = journal.of_migration(look.services.api, migration.uuid)
    tries = [each for each in moves if present_name(each.recipe) == recipe]
    why = f"Its {what} failed: {(tries[-1].error or {}).get('message') if tries else 'no reason was recorded'}"
    if what == "revert" and len(tries) > look.request.retries:
        look.fail(server, why, for_good=True)
    else:
        again = utcnow() + look.pause_after(max(1, len(tries)))
        look.change(server, state=DrainServerState.MOVED, why=why, not_before=again)


def _confirm_or_revert(
    look: Look, server: DrainServer, operations: list[OperationBrief], migration: Migration | None, load: Load
) -> None:
    """Requests the confirm or the revert of a server that has arrived."""
    if server.state is not DrainServerState.MOVED or migration is None or not is_due(server, utcnow()):
        return
    if look.drain.state is DrainState.ROLLING_BACK:
        if load.has_room(look.room, server):
            concluding.ask_for_revert(look, server)
            load.add(server)
    elif _is_to_be_confirmed(look, operations[-1]):
        concluding.ask_for_confirm(look, server, migration)


def _is_to_be_confirmed(look: Look, operation: OperationBrief) -> bool:
    """Whether the drain confirms a move now. It does not while it is paused: a confirm can't be reverted."""
    if look.drain.state not in (DrainState.RUNNING, DrainState.CANCELLING):
        return False
    match look.request.afterwards:
        case Afterwards.CONFIRM:
            return True
        case Afterwards.CONFIRM_LATER:
            hours = timedelta(hours=look.request.confirm_after or 0.0)
            return operation.ended_at is not None and operation.ended_at + hours <= utcnow()
        case Afterwards.OWNERS:
            return False
