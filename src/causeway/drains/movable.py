"""Finds out whether a server of a drain can be moved now. If not, the server's row says why, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from causeway import errors
from causeway.drains.holds import reason_of
from causeway.drains.look import Look
from causeway.drains.paths import lost_with_host, memory_lost_with_host
from causeway.hosts import liveness
from causeway.hosts.liveness import HostLife
from causeway.model.drains import DrainServer, How
from causeway.model.holds import held_until
from causeway.model.instance import Instance
from causeway.model.soft_deleted import SINCE
from causeway.model.states import VmState
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database, utcnow


@dataclass
class Found:
    """A server as it is now. ``life``: the life of its host; None if the server is on no host."""

    instance: Instance
    cell_uuid: str
    database: Database
    life: HostLife | None


def find_movable(look: Look, server: DrainServer) -> Found | None:
    """Returns the server if it can be moved now.

    Passes it over if its user deleted or moved it, and blocks it if it can't go.
    """
    if look.is_gone(server):
        look.pass_over(server, "It was deleted.")
        return None
    cell, database = look.services.cells.of_server(server.instance_uuid)
    instance = instances.find(database, server.instance_uuid, with_tags=False)
    if instance is None or instance.task_state is not None or instance.vm_state is VmState.BUILDING:
        # An operation moves or changes the server now.
        return None
    if instance.host is not None and not _is_in_scope(look, server, instance):
        look.pass_over(server, f"It is on {instance.host} by now: it was moved away meanwhile.")
        return None
    refusal = _obstacle_of(look, instance)
    if refusal is not None:
        look.block(server, *refusal)
        return None
    if instance.host is None:
        if cell.name != server.source_cell and server.how is not How.EVACUATE:
            look.pass_over(server, f"It is in {cell.name} by now: it was moved away meanwhile.")
            return None
        return Found(instance, cell.uuid, database, None)
    life = liveness.of_host(look.services, database, instance.host)
    if life.is_down:
        look.block(server, f"It can't leave its host: {life.explained()}.", "Start the host, or say that it is dead.")
        return None
    if life.is_fenced and instance.vm_state is not VmState.SHELVED:
        lost = memory_lost_with_host(instance.host, instance.vm_state) or lost_with_host(
            instance.host, block_devices.of_instance(database, instance.uuid)
        )
        if lost is not None:
            look.block(server, lost.why, lost.help)
            return None
    return Found(instance, cell.uuid, database, life)


def _is_in_scope(look: Look, server: DrainServer, instance: Instance) -> bool:
    if instance.host in look.places:
        return True
    scope = look.request.scope
    is_named = server.instance_uuid in scope.servers or instance.project_id in scope.projects
    return is_named and instance.host == server.source_host


def _obstacle_of(look: Look, instance: Instance) -> tuple[str, str] | None:
    """Returns why the server's state prevents a move, and what would help; None if it does not."""
    match instance.vm_state:
        case VmState.ACTIVE | VmState.STOPPED | VmState.PAUSED | VmState.SUSPENDED | VmState.ERROR | VmState.SHELVED:
            return None
        case VmState.SHELVED_OFFLOADED if instance.host is None:
            return None
        case VmState.RESIZED:
            return "It waits for its owner to confirm or revert its resize.", "Confirm or revert it."
        case VmState.RESCUED:
            return "It is rescued.", "End the rescue (unrescue)."
        case VmState.SOFT_DELETED:
            kept = _kept_until(look, instance)
            return (
                f"It was deleted, and is kept{kept}.",
                "Wait for that, restore it, or delete it for good (forceDelete).",
            )
        case state:
            return f"A server that is {state.value} can't be moved.", "Bring it to ACTIVE or SHUTOFF."


def _kept_until(look: Look, instance: Instance) -> str:
    """Returns until when a soft-deleted server is kept, as a part of a sentence; empty if that is unknown."""
    since, seconds = instance.system_metadata.get(SINCE), look.services.conf.reclaim_instance_interval
    if since is None or not seconds:
        return ""
    return f" until {datetime.fromisoformat(since) + timedelta(seconds=seconds):%Y-%m-%d %H:%M} UTC"


def is_held(look: Look, server: DrainServer, instance: Instance) -> bool:
    """Whether the owner asks the drain to wait, perhaps only since the plan was made."""
    try:
        held = held_until(instance.metadata)
    except errors.BadRequest as unreadable:
        look.block(server, unreadable.message)
        return True
    if held is None or held <= utcnow():
        return False
    look.change(server, not_before=held, why=reason_of(held))
    return True


def has_left(server: DrainServer, instance: Instance) -> bool:
    """Whether a server has left its dead host and is on no host yet. Then it must be started, even if the drain is cancelled."""
    return server.how is How.EVACUATE and instance.host is None and instance.vm_state is VmState.SHELVED_OFFLOADED
