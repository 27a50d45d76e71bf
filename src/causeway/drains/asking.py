"""Requests the move of one server of a drain.

This module chooses the id of each request, and first writes it into the server's row, so the next look can find the request in
the journal. A request is accepted only while the drain has the same owner and state, so a slow conductor can't repeat one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.drains.look import Look
from causeway.drains.movable import Found, find_movable, has_left, is_held
from causeway.drains.notices import note_in_history
from causeway.drains.pace import is_due
from causeway.drains.paths import STANDING_STILL
from causeway.faults import injector
from causeway.model import operations, server_actions
from causeway.model.block_device import has_local_disks
from causeway.model.drains import DrainServer, DrainServerState, DrainState, How
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.shelved import WAS_OFF
from causeway.model.states import VmState
from causeway.moves.live_requests import check_movable, request_live_migration
from causeway.moves.requests import request_resize
from causeway.moves.without_guest.move_records import request_move_of_records
from causeway.moves.without_guest.unshelve_memory import UnshelveMemory
from causeway.operations.shelve import ShelveMemory
from causeway.requests.asking import ask
from causeway.store.api import cells, flavors, journal
from causeway.store.cell import block_devices, instances
from causeway.store.database import utcnow

_LIVE = (How.LIVE, How.NEAR_LIVE)
# The length of the journal's column, in characters.
_LONGEST_REASON = 255
_GO_COLD = (VmState.STOPPED, VmState.ERROR)
_GO_OFF = (VmState.ACTIVE, *_GO_COLD)


def ask_for_move(look: Look, server: DrainServer, *, held_until: datetime | None = None) -> bool:
    """Requests the move of a server. Returns False if that is impossible now: the server's row says why, or it is busy.

    ``held_until``: until then only the disks are copied. If they can't be copied ahead, the move is not requested before then.
    """
    found = find_movable(look, server)
    if found is None or (not has_left(server, found.instance) and is_held(look, server, found.instance)):
        return False
    try:
        _request_move(look, server, found, held_until)
    except (errors.TakenOver, errors.DatabaseFailed):
        # The request may have been accepted all the same: the next look finds out.
        raise
    except errors.CausewayError as refusal:
        if server.state is DrainServerState.ASKED and _is_known(look, server):
            # The request was accepted, or the journal can't say yet.
            raise
        if isinstance(refusal, errors.StateChanged):
            look.change(server, state=DrainServerState.PENDING, why=refusal.message)
        else:
            look.fail(server, refusal.message, for_good=not refusal.passing)
    return server.state is DrainServerState.ASKED


def start_on_target(look: Look, server: DrainServer) -> bool:
    """Starts a server that `has_left` its host. Returns False if it has not left its host, or was deleted."""
    cell, database = look.services.cells.of_server(server.instance_uuid)
    instance = instances.find(database, server.instance_uuid, with_tags=False)
    if instance is None or not has_left(server, instance) or look.is_gone(server):
        return False
    if is_due(server, utcnow()):
        if server.target_cell is None and look.drain.state is not DrainState.RUNNING:
            # The drain makes no plans any more, so the server starts in the cell of its records.
            look.change(server, target_cell=cell.name)
        ask_for_move(look, server)
    return True


def _is_known(look: Look, server: DrainServer) -> bool:
    return bool(journal.of_requests(look.services.api, {server.instance_uuid: server.request_id or ""}))


def _request_move(look: Look, server: DrainServer, found: Found, held_until: datetime | None) -> None:
    instance = found.instance
    flavor = _flavor_of(look, instance)
    is_on_disk = found.life is not None and found.life.is_up and instance.vm_state is not VmState.SHELVED
    if held_until is not None and not is_on_disk:
        # The server has no disks that could be copied before its window.
        return
    if found.life is None:
        if server.how is How.EVACUATE and look.cell_named(server.target_cell) == found.cell_uuid:
            _ask_for_unshelve(look, server, found)
        else:
            _ask_for_records(look, server, found, flavor)
        return
    if instance.vm_state is VmState.SHELVED or found.life.is_fenced:
        _ask_for_offload(look, server, found)
        return
    _refuse_without_disks(look, found)
    how = _present_way(look, server, instance, resized=flavor is not None)
    if how not in _LIVE and instance.vm_state not in _GO_OFF:
        help_ = f"{STANDING_STILL.get(instance.vm_state, 'Bring it to ACTIVE or SHUTOFF')}."
        look.block(server, f"A server that is {instance.vm_state.value} can't be moved {how.value}.", help_)
        return
    if held_until is not None and (how is not How.WARM or instance.vm_state is not VmState.ACTIVE):
        return
    _ask_for_transfer(look, server, found, how, flavor, held_until)


def _ask_for_transfer(
    look: Look, server: DrainServer, found: Found, how: How, flavor: Flavor | None, held_until: datetime | None
) -> None:
    """Requests a live migration, a cold migration or a resize, to the planned host."""
    instance = found.instance
    target = None if server.target_host == instance.host else server.target_host
    target_cell = None if target is None else cells.cell_of_host(look.services.api, target)
    is_suspended = instance.vm_state is VmState.SUSPENDED
    if is_suspended and target_cell == found.cell_uuid:
        look.block(server, "It is suspended, and its memory goes to other cells only.", "Resume it.")
        return
    context = _note(
        look,
        server,
        found,
        how=how,
        target_host=target,
        target_cell=look.cell_name(target_cell),
        flavor=flavor,
        held_until=held_until,
    )
    reason = _reason(look)
    if how in _LIVE:
        check_movable(instance)
        leaves_cell = target_cell != found.cell_uuid if target_cell is not None else how is How.NEAR_LIVE
        request_live_migration(
            look.requests,
            context,
            instance,
            found.cell_uuid,
            host=target,
            leaves_cell=leaves_cell or is_suspended,
            may_leave_cell=True,
            action=server_actions.MIGRATE_SUSPENDED if is_suspended else server_actions.LIVE_MIGRATION,
            reason=reason,
            also=look.still_wanted(),
        )
    else:
        request_resize(
            look.requests,
            context,
            instance,
            flavor=flavor,
            host=target,
            cross_cell_allowed=found.life is not None,
            reason=reason,
            cell_uuid=found.cell_uuid,
            held_until=held_until,
            also=look.still_wanted(),
        )
    injector.reach("drain.move.after")


def _note(
    look: Look,
    server: DrainServer,
    found: Found,
    *,
    how: How,
    target_host: str | None,
    target_cell: str | None,
    flavor: Flavor | None,
    held_until: datetime | None = None,
) -> RequestContext:
    """Writes the coming request into the server's row. Returns the context for the request."""
    instance, context = found.instance, look.context()
    injector.reach("drain.move.before")
    look.change(
        server,
        state=DrainServerState.ASKED,
        request_id=context.request_id,
        how=how,
        source_host=instance.host or server.source_host,
        source_cell=look.cell_name(found.cell_uuid),
        target_host=target_host,
        target_cell=target_cell,
        flavor=instance.flavor.name,
        new_flavor=None if flavor is None else flavor.name,
        began_at=server.began_at or utcnow(),
        not_before=held_until,
        took=None,
        stood_still=None,
        why=None,
        help=None,
    )
    injector.reach("drain.move.noted")
    note_in_history(look.services.cells, look.drain, instance.uuid, found.cell_uuid)
    return context


def _reason(look: Look) -> str:
    return (look.request.reason or f"Drain {look.drain.name} ({look.drain.id})")[:_LONGEST_REASON]


def _ask_for_records(look: Look, server: DrainServer, found: Found, flavor: Flavor | None) -> None:
    """Requests the move of the records of a server that is on no host.

    If the server was on a host when it was planned, it may be planned again.
    """
    how = How.EVACUATE if server.how is How.EVACUATE else How.RECORDS
    cell = look.cell_named(server.target_cell)
    if cell is None or cell == found.cell_uuid:
        look.change(server, how=how, target_host=None, target_cell=None)
        return
    target = server.target_host if how is How.EVACUATE else None
    context = _note(look, server, found, how=how, target_host=target, target_cell=server.target_cell, flavor=flavor)
    request_move_of_records(
        look.requests,
        context,
        found.instance,
        found.cell_uuid,
        target_cell=cell,
        flavor=flavor,
        reason=_reason(look),
        also=look.still_wanted(),
    )
    injector.reach("drain.move.after")


def _ask_for_offload(look: Look, server: DrainServer, found: Found) -> None:
    """Requests the offload of a server that is shelved, or whose host is dead. Its records move when it is on no host."""
    instance = found.instance
    is_shelved = instance.vm_state is VmState.SHELVED
    changes: dict[str, Any] = {}
    if instance.vm_state is VmState.STOPPED:
        changes["system_metadata"] = instance.system_metadata | {WAS_OFF: "True"}
    context = _note(
        look,
        server,
        found,
        how=How.RECORDS if is_shelved else How.EVACUATE,
        target_host=None if is_shelved else server.target_host,
        target_cell=server.target_cell,
        flavor=None,
    )
    ask(
        look.requests,
        context,
        instance,
        found.cell_uuid,
        server_actions.SHELVE_OFFLOAD if is_shelved else server_actions.OFFLOAD_FROM_DEAD_HOST,
        operations.SHELVE_OFFLOAD,
        ShelveMemory(leaves_dead_host=not is_shelved),
        reason=_reason(look),
        also=look.still_wanted(),
        **changes,
    )
    injector.reach("drain.move.after")


def _ask_for_unshelve(look: Look, server: DrainServer, found: Found) -> None:
    """Requests the unshelve of a server that has left a dead host, when its records are in its target cell."""
    context = look.context()
    injector.reach("drain.move.before")
    look.change(server, state=DrainServerState.ASKED, request_id=context.request_id, not_before=None, why=None)
    injector.reach("drain.move.noted")
    ask(
        look.requests,
        context,
        found.instance,
        found.cell_uuid,
        server_actions.UNSHELVE,
        operations.UNSHELVE,
        UnshelveMemory(server.target_host, power_on=WAS_OFF not in found.instance.system_metadata),
        reason=_reason(look),
        also=look.still_wanted(),
    )
    injector.reach("drain.move.after")


def _refuse_without_disks(look: Look, found: Found) -> None:
    """Raises Conflict if a server in ERROR has no disks on its host, because a move would notice that only later."""
    instance = found.instance
    if instance.vm_state is not VmState.ERROR:
        return
    if not has_local_disks(block_devices.of_instance(found.database, instance.uuid)):
        return
    facts = look.services.computes(found.cell_uuid).inspect_instance(
        look.context(), instance.host or "", instance_uuid=instance.uuid
    )
    if not facts.has_disks:
        raise errors.Conflict(
            f"It is in error, and has no disks in their place on host {instance.host}: rebuild it, or delete it."
        )


def _present_way(look: Look, server: DrainServer, instance: Instance, *, resized: bool) -> How:
    """Returns how the server moves: as planned, if its present state allows that."""
    if instance.vm_state in _GO_COLD:
        return How.COLD
    how = server.how or look.request.how
    if instance.vm_state is VmState.SUSPENDED and not resized and look.request.how not in (How.WARM, How.COLD):
        # The server may have run when it was planned.
        return How.NEAR_LIVE
    if resized and how is not How.COLD:
        return How.WARM
    if how is not How.GENTLEST:
        # The server was off when it was planned, but runs now.
        return How.WARM if how is How.COLD and look.request.how is not How.COLD else how
    try:
        check_movable(instance)
    except errors.BadRequest:
        return How.WARM
    return How.LIVE


def _flavor_of(look: Look, instance: Instance) -> Flavor | None:
    """Returns the flavor to which the server is resized; None if it keeps its own. Raises FlavorNotFound."""
    name = look.request.flavors.get(instance.flavor.name)
    if name is None or name == instance.flavor.name:
        return None
    for flavor in flavors.list_all(look.services.api):
        if name == flavor.name and not flavor.disabled:
            return flavor
    raise errors.FlavorNotFound(f"Flavor {name} could not be found, or is disabled.")
