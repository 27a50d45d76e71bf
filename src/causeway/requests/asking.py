"""Requests operations of the journal: writes them, and notifies a conductor. The caller has checked what can be checked."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.server_actions import ServerAction
from causeway.requests import acceptance, requesters
from causeway.requests.of_servers import RequestServices, action_of, enter, notify_conductor
from causeway.store.api import migrations


def ask(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    cell_uuid: str,
    action: ServerAction,
    recipe: str,
    memory: Any,
    *,
    prepare: Callable[[], None] | None = None,
    discard: Callable[[], None] | None = None,
    migration: Migration | None = None,
    memory_version: int = 1,
    reason: str | None = None,
    also: Callable[[sa.Connection], None] | None = None,
    **changes: Any,
) -> None:
    """Writes an operation to the journal and notifies a conductor. The caller has checked everything that can be checked.

    ``prepare``, ``discard``: see `acceptance.Request`. ``migration``: the visible record of the operation.
    ``memory_version``: the format of ``memory``. ``reason``: why, in the requester's words. ``also``: is called in the
    transaction that accepts the operation; if it raises, the operation is refused. ``changes``: of the server, together with
    its task. Raises StateChanged if another request was quicker, and what ``prepare`` raises; then nothing has happened.
    """
    move = operation_of(context, instance.uuid, recipe, memory, migration)
    move.memory_version = memory_version
    move.reason = reason
    request = acceptance.Request(
        move,
        action_of(context, instance, action.name),
        expected_task=action.task,
        expected_vm=action.vm,
        changes=action.task_change | changes,
        prepare=prepare,
        discard=discard,
        on_acceptance=acceptance.all_of(
            also, None if migration is None else partial(migrations.insert_in, migration=migration)
        ),
    )
    enter(services, context, cell_uuid, request)
    notify_conductor(services, context, move)


def ask_at_once(
    services: RequestServices, context: RequestContext, instance_uuid: str, recipe: str, memory: Any
) -> None:
    """Requests an operation that only goes forward and gives the server no task, and notifies a conductor.

    Raises StateChanged (DevicesChanging) if another operation excludes it.
    """
    move = operation_of(context, instance_uuid, recipe, memory)
    move.pivoted = True
    acceptance.accept_at_once(services.api, move, requesters.requester_of(services.conf, context, instance_uuid))
    notify_conductor(services, context, move)


def operation_of(
    context: RequestContext, instance_uuid: str, recipe: str, memory: Any, migration: Migration | None = None
) -> Operation:
    """An operation as it is written to the journal."""
    saga_id = str(uuids.uuid4())
    return Operation(
        id=saga_id,
        migration_uuid=saga_id if migration is None else migration.uuid,
        instance_uuid=instance_uuid,
        recipe=recipe,
        data=msgspec.to_builtins(memory),
        request_id=context.request_id,
        user_id=context.user_id,
        project_id=context.project_id,
        memory_version=1,
    )
