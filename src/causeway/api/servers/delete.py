"""``DELETE /servers/{server_id}`` and the actions forceDelete and restore."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import hosts, loading, schemas
from causeway.model import operations, server_actions
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.operations.requests import ask_for_delete
from causeway.operations.soft_delete import RestoreMemory, SoftDeleteMemory
from causeway.requests.of_servers import run_waiting
from causeway.store.api import build_requests, groups, mappings, wanted_operations
from causeway.store.database import Database

# A server gets its cell, and loses its build request, at most once.
_ATTEMPTS = 2


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, server_id: str) -> Response:
    _delete(request, server_id, "os_compute_api:servers:delete", may_wait=True)
    return Response(204)


@handler(body=schemas.bare("forceDelete"), statuses=(202,), answer=EMPTY)
def force_delete(request: ApiRequest, server_id: str) -> Response:
    _delete(request, server_id, "os_compute_api:os-deferred-delete:force", may_wait=False)
    return Response(202)


@handler(body=schemas.bare("restore"), statuses=(202,), answer=EMPTY)
def restore(request: ApiRequest, server_id: str) -> Response:
    rule, action = "os_compute_api:os-deferred-delete:restore", server_actions.RESTORE
    home = loading.load_for_action(request, server_id, rule, action)
    hosts.check_up(request, loading.check_host(home.instance), home.cell_uuid)
    quota.check_restore(request.services, home.instance)
    loading.ask_for(request, home, action, operations.RESTORE, RestoreMemory())
    return Response(202)


def _delete(request: ApiRequest, server_id: str, rule: str, *, may_wait: bool) -> None:
    """``may_wait``: the server may be soft-deleted, so that it can be restored for a while."""
    for _attempt in range(_ATTEMPTS):
        found = loading.load(request, server_id, rule, tags=False)
        loading.check_unlocked(request, found.instance)
        if found.cell_uuid is None:
            if _delete_unbuilt(request.services.api, server_id):
                run_waiting(request.services, server_id)
                return
            continue
        if found.instance.task_state is TaskState.DELETING:
            return
        if may_wait and request.services.conf.reclaim_instance_interval > 0:
            if found.instance.vm_state is VmState.SOFT_DELETED or found.instance.task_state is TaskState.SOFT_DELETING:
                return
            if _soft_deletes(request, found.instance, found.cell_uuid):
                return
        ask_for_delete(request.services, request.context, found.instance, found.cell_uuid)
        return
    raise errors.Conflict(f"Instance {server_id} is being assigned to a host at this moment. Try again.")


def _soft_deletes(request: ApiRequest, instance: Instance, cell_uuid: str) -> bool:
    """Begins a soft delete. False if the server's state does not allow it: it is then deleted at once, as in Nova."""
    action = server_actions.SOFT_DELETE
    if not action.allows(instance.vm_state) or instance.launched_at is None or not instance.host:
        return False
    home = loading.Home(instance, cell_uuid, request.services.cells.database(cell_uuid))
    memory = SoftDeleteMemory(was_running=instance.vm_state in (VmState.ACTIVE, VmState.RESCUED))
    try:
        loading.ask_for(request, home, action, operations.SOFT_DELETE, memory)
    except errors.StateChanged:
        return False
    return True


def _delete_unbuilt(api: Database, server_id: str) -> bool:
    """Deletes a server that has no cell, and cancels its build. False if it has got a cell in the meantime."""
    with api.write() as connection:
        if not build_requests.delete_in(connection, server_id):
            return False
        connection.execute(mappings.TABLE.delete().where(mappings.TABLE.c.instance_uuid == server_id))
        connection.execute(mappings.SPECS.delete().where(mappings.SPECS.c.instance_uuid == server_id))
        connection.execute(groups.MEMBERS.delete().where(groups.MEMBERS.c.instance_uuid == server_id))
        wanted_operations.cancel_in(connection, server_id, operations.BUILD)
    return True
