"""Finds the server of a request and checks whether an action may be done to it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.validation import is_uuid
from causeway.hardware import firmware
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance, InstanceAction
from causeway.model.server_actions import HostCheck, ServerAction
from causeway.model.states import DELETING, TaskState, VmState
from causeway.requests.asking import ask
from causeway.store import listing, servers
from causeway.store.api import mappings
from causeway.store.cell import actions, instances
from causeway.store.database import Database

T = TypeVar("T")
# The task of an assisted snapshot, and for how many seconds a request waits for it.
_SNAPSHOT, _LONGEST_SNAPSHOT = TaskState.SNAPSHOTTING_VOLUME, 30


def target_of(instance: Instance) -> dict[str, Any]:
    """The target of policy rules about a server."""
    return {"project_id": instance.project_id, "user_id": instance.user_id}


def load(
    request: ApiRequest,
    server_id: str,
    rule: str,
    *,
    columns: frozenset[str] | None = None,
    tags: bool = True,
    volumes: bool = False,
    group: bool = False,
    anyones: bool = False,
) -> listing.Listed:
    """The server. Raises ServerNotFound if the caller may not see it, Forbidden unless policy allows ``rule`` on it.

    ``anyones``: policy alone decides, for requests of services, which don't belong to the server's project.
    """
    if anyones:
        request.authorize(rule, {})
    if not is_uuid(server_id):
        raise errors.ServerNotFound(server_id)
    found = listing.get_server(
        request.services.cells, server_id, columns=columns, tags=tags, volumes=volumes, group=group
    )
    owner = {name: found.values[name] for name in ("project_id", "user_id")}
    if not anyones and not request.context.is_admin and owner["project_id"] != request.project_id:
        raise errors.ServerNotFound(server_id)
    request.context.resource_uuid = server_id
    if not anyones:
        request.authorize(rule, owner)
    return found


@dataclass
class Home:
    """A server that is in a cell, with that cell's database."""

    instance: Instance
    cell_uuid: str
    database: Database
    # The node of the server's host, if it was read.
    node: ComputeNode | None = None


def load_in_cell(
    request: ApiRequest, server_id: str, rule: str, action: str, *, tags: bool = True, after_snapshot: bool = False
) -> Home:
    """A server that can be acted on. Raises InvalidState (409) if it has no cell yet, CellDown if its cell does not answer.

    ``after_snapshot``: waits for an assisted snapshot of one of its volumes. Block storage asks for these, and in Nova
    the server has no task meanwhile: users don't see them, and don't expect to be refused.
    """
    try:
        found = load(request, server_id, rule, tags=tags)
    except errors.DatabaseFailed as failure:
        raise _cell_down(request, server_id, rule, action) from failure
    home = _home(request, server_id, found, action)
    return _when_snapshot_ended(request, home, tags=tags) if after_snapshot else home


def _home(request: ApiRequest, server_id: str, found: listing.Listed, action: str) -> Home:
    if found.cell_uuid is None:
        raise errors.InvalidState.for_action(action, server_id, "vm_state", found.instance.vm_state.value)
    return Home(found.instance, found.cell_uuid, request.services.cells.database(found.cell_uuid))


def _when_snapshot_ended(request: ApiRequest, home: Home, *, tags: bool = True) -> Home:
    """The server after its assisted snapshot, for which it waits up to `_LONGEST_SNAPSHOT` seconds."""
    found = home.instance

    def has_ended() -> bool:
        nonlocal found
        found = instances.get(home.database, home.instance.uuid, with_tags=tags)
        return found.task_state is not _SNAPSHOT

    if home.instance.task_state is _SNAPSHOT:
        request.services.long_polls.wait(has_ended, _LONGEST_SNAPSHOT)
    return replace(home, instance=found)


def load_anyones(request: ApiRequest, server_id: str, rule: str, action: str) -> Home:
    """`load_in_cell` for requests of services: policy alone decides. Waits for an assisted snapshot."""
    try:
        found = load(request, server_id, rule, anyones=True)
    except errors.DatabaseFailed as failure:
        raise _does_not_answer(server_id, action) from failure
    return _when_snapshot_ended(request, _home(request, server_id, found, action))


def _cell_down(request: ApiRequest, server_id: str, rule: str, action: str) -> errors.CausewayError:
    """The error while a server's cell does not answer: CellDown, or ServerNotFound if the caller may not see the server.

    Raises Forbidden if policy does not allow the action.
    """
    mapping = mappings.get(request.services.api, server_id)
    if mapping.queued_for_delete or (not request.context.is_admin and mapping.project_id != request.project_id):
        return errors.ServerNotFound(server_id)
    request.authorize(rule, {"project_id": mapping.project_id, "user_id": mapping.user_id})
    return _does_not_answer(server_id, action)


def _does_not_answer(server_id: str, action: str) -> errors.CellDown:
    return errors.CellDown(
        f"Cannot '{action}' instance {server_id}: the cell that it is in does not answer now. Try again later."
    )


def check_unlocked(request: ApiRequest, instance: Instance) -> None:
    """Raises ServerLocked if the server is locked, except for administrators."""
    if instance.locked and not request.context.is_admin:
        raise errors.ServerLocked.for_server(instance.uuid)


def check_host(instance: Instance) -> str:
    """The server's host; raises Conflict if it has none."""
    if not instance.host:
        raise errors.Conflict(f"Instance {instance.uuid} is not ready: it has no host.")
    return instance.host


IDLE: tuple[TaskState | None, ...] = (None,)


def check_state(
    instance: Instance,
    action: str,
    *,
    vm: Collection[VmState] | None = None,
    task: Collection[TaskState | None] | None = IDLE,
    launched: bool = True,
) -> None:
    """Raises InvalidState unless the states allow the action. Source: Compute API guide, "Server concepts"."""
    if vm is not None and instance.vm_state not in vm:
        raise errors.InvalidState.for_action(action, instance.uuid, "vm_state", instance.vm_state.value)
    if task is not None and instance.task_state not in task:
        raise errors.InvalidState.for_action(action, instance.uuid, "task_state", instance.task_state)
    if launched and instance.launched_at is None:
        raise errors.InvalidState.for_action(action, instance.uuid, "launched_at", None)


def new_action(request: ApiRequest, instance: Instance, action: str) -> InstanceAction:
    context = request.context
    return InstanceAction(action, instance.uuid, context.request_id, context.user_id, context.project_id)


def change(request: ApiRequest, home: Home, work: Callable[[sa.Connection], T]) -> T:
    """Runs ``work`` in a transaction of the cell where the server lives now (`causeway.store.servers`)."""
    return servers.change(request.services.cells, home.instance.uuid, home.cell_uuid, work)


def save(request: ApiRequest, home: Home, **changes: Any) -> None:
    """Sets fields of the server."""
    change(request, home, lambda connection: instances.update_in(connection, home.instance.uuid, **changes))


def load_for_action(request: ApiRequest, server_id: str, rule: str, action: ServerAction, *, tags: bool = True) -> Home:
    """A server whose state allows an action now. Nothing is written: another request may still begin first.

    Waits for an assisted snapshot, unless the action may begin beside it (`load_in_cell`).
    """
    after_snapshot = action.task is not None and _SNAPSHOT not in action.task
    home = load_in_cell(request, server_id, rule, action.name, tags=tags, after_snapshot=after_snapshot)
    check_action(request, home.instance, action)
    return home


def check_action(request: ApiRequest, instance: Instance, action: ServerAction) -> None:
    """Raises BadRequest (TPM), ServerLocked, InvalidState or Conflict (no host) unless the action is allowed now."""
    if action.refuses_tpm and firmware.of_instance(instance).tpm is not None:
        raise errors.BadRequest(f"Operation '{action.name}' not supported for vTPM-enabled instance ({instance.uuid}).")
    if action.lockable:
        check_unlocked(request, instance)
    if action.host is HostCheck.BEFORE_STATES:
        check_host(instance)
    check_state(instance, action.name, vm=action.vm, task=action.task)
    if action.host is HostCheck.AFTER_STATES:
        check_host(instance)


def begin_action(request: ApiRequest, home: Home, action: ServerAction, **changes: Any) -> None:
    """Sets the action's task state and the ``changes`` of the server, and records that the action began.

    A compare-and-swap on the server's states, in one transaction. Raises StateChanged (409) if another request was quicker.
    """

    def swap(connection: sa.Connection) -> None:
        instances.swap_in(
            connection,
            home.instance.uuid,
            expected_task=action.task,
            expected_vm=action.vm,
            **(action.task_change | changes),
        )
        actions.start_in(connection, new_action(request, home.instance, action.name))

    change(request, home, swap)


def load_and_begin(request: ApiRequest, server_id: str, rule: str, action: ServerAction) -> Home:
    """`load_for_action`, then `begin_action`: for actions that need nothing else."""
    home = load_for_action(request, server_id, rule, action)
    begin_action(request, home, action)
    return home


def ask_for(request: ApiRequest, home: Home, action: ServerAction, recipe: str, memory: Any, **options: Any) -> None:
    """Writes an operation to the journal and begins it. ``options``: those of `causeway.requests.asking.ask`."""
    ask(request.services, request.context, home.instance, home.cell_uuid, action, recipe, memory, **options)


def clear_task(home: Home) -> None:
    """Clears the task state that `begin_action` set, if the action ends before a conductor got it."""
    with suppress(errors.StateChanged, errors.ServerNotFound):
        instances.update(
            home.database,
            home.instance.uuid,
            expected_task=set(TaskState) - DELETING,
            task_state=None,
        )
