"""``DELETE /servers/{server_id}`` and the action forceDelete."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading, schemas
from causeway.model import operations
from causeway.model.states import DELETING
from causeway.operations.requests import ask_for_delete
from causeway.parts.requests import run_waiting
from causeway.store.api import build_requests, groups, journal, mappings
from causeway.store.database import Database

# A server gets its cell, and its build request goes, at most once.
_ATTEMPTS = 2


@handler(statuses=(204,))
def delete(request: ApiRequest, server_id: str) -> Response:
    _delete(request, server_id, "os_compute_api:servers:delete")
    return Response(204)


@handler(body=schemas.bare("forceDelete"), statuses=(202,))
def force_delete(request: ApiRequest, server_id: str) -> Response:
    _delete(request, server_id, "os_compute_api:os-deferred-delete:force")
    return Response(202)


def _delete(request: ApiRequest, server_id: str, rule: str) -> None:
    for _attempt in range(_ATTEMPTS):
        found = loading.load(request, server_id, rule, tags=False)
        loading.check_unlocked(request, found.instance)
        if found.cell_uuid is None:
            if _forget(request.services.api, server_id):
                run_waiting(request.services, server_id)
                return
            continue
        if found.instance.task_state in DELETING:
            return
        ask_for_delete(request.services, request.context, found.instance, found.cell_uuid)
        return
    raise errors.Conflict(f"Instance {server_id} is being handed to a host at this moment. Try again.")


def _forget(api: Database, server_id: str) -> bool:
    """Deletes a server that has no cell; False if it has just got one. What was done to build it is undone."""
    with api.write() as connection:
        if not build_requests.delete_in(connection, server_id):
            return False
        connection.execute(mappings.TABLE.delete().where(mappings.TABLE.c.instance_uuid == server_id))
        connection.execute(mappings.SPECS.delete().where(mappings.SPECS.c.instance_uuid == server_id))
        connection.execute(groups.MEMBERS.delete().where(groups.MEMBERS.c.instance_uuid == server_id))
        journal.cancel_in(connection, server_id, operations.BUILD)
    return True
