"""Attaching and detaching: what keeps them and moves apart. The rule is in `causeway.store.cell.device_changes`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.servers import loading
from causeway.api.servers.loading import Home
from causeway.model.states import MigrationStatus, VmState
from causeway.store.api import migrations
from causeway.store.cell import actions, device_changes

T = TypeVar("T")

_ENDING: list[str] = [MigrationStatus.CONFIRMING, MigrationStatus.REVERTING]


def carry_out(
    request: ApiRequest, home: Home, action: str, resource_id: str, vm: Collection[VmState], work: Callable[[], T]
) -> T:
    """Records the action and has a conductor do it, if no move works on the server; raises Conflict if one does.

    ``resource_id``: of the volume or port; raises Conflict if another request changes it.
    """
    uuid, request_id = home.instance.uuid, request.context.request_id

    def begin(connection: sa.Connection) -> None:
        device_changes.begin_in(connection, uuid, request_id, action, resource_id, vm=vm)
        actions.start_in(connection, loading.new_action(request, home.instance, action))

    loading.change(request, home, begin)
    try:
        if home.instance.vm_state is VmState.RESIZED:
            _check_not_ending(request, uuid, action)
        return work()
    except errors.RpcTimeout:
        # A conductor may be at it still: whoever does it ends it.
        raise
    except errors.CausewayError:
        # The conductor has ended it or left it to be settled (then it stays), or has never heard of it.
        _cell, database = request.services.cells.of_server(uuid)
        device_changes.end(database, uuid, request_id)
        raise


def _check_not_ending(request: ApiRequest, uuid: str, action: str) -> None:
    found = migrations.search(request.services.api, instance_uuid=uuid, statuses=_ENDING)
    if found:
        raise errors.InvalidState.for_action(action, uuid, "migration status", found[0].status.value)
