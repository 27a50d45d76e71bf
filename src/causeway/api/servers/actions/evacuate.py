"""Action evacuate: rebuilds a server, whose host is down, on another host of its cell."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers import servers as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import to_bool
from causeway.api.servers import hosts, loading, passwords
from causeway.api.servers.actions import schemas_verbs
from causeway.api.servers.loading import Home
from causeway.model import operations, server_actions
from causeway.model.block_device import is_volume_backed
from causeway.model.host import STORAGE
from causeway.model.states import VmState
from causeway.moves.recipes import WITH_GUEST
from causeway.moves.without_guest.evacuate import EvacuateMemory, migration_of
from causeway.requests.of_servers import notify_conductor
from causeway.store.api import cells as cell_records
from causeway.store.api import journal, wanted_operations
from causeway.store.cell import block_devices
from causeway.store.cell import hosts as cell_hosts


@handler(body=schemas_verbs.EVACUATE, answer=answers.EVACUATE)
def evacuate(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["evacuate"]
    home = loading.load_for_action(request, server_id, "os_compute_api:os-evacuate", server_actions.EVACUATE)
    host = wanted.get("host")
    _check_hosts(request, home, host)
    node = next(iter(cell_hosts.list_nodes(home.database, host=home.instance.host)), None)
    if node is None:
        raise errors.HostNotFound(f"Compute host {home.instance.host} could not be found.")
    storage = node.capabilities.get(STORAGE)
    if (
        storage is None
        and to_bool(wanted.get("onSharedStorage", False))
        and not is_volume_backed(block_devices.of_instance(home.database, server_id))
    ):
        raise errors.BadRequest(
            "Invalid state of instance files on shared storage: the server's host shares its storage with no other host."
        )
    _check_rest(request, server_id)
    memory = EvacuateMemory(
        source_host=home.instance.host or "",
        source_node=node.uuid,
        # From 2.95 on a server stays off until its user starts it.
        power_on=home.instance.vm_state is not VmState.STOPPED and request.version < (2, 95),
        old_vm_state=home.instance.vm_state,
        source_storage=storage,
        wanted_host=host,
        forced=to_bool(wanted.get("force", False)),
    )
    migration = migration_of(request.context, home.instance, home.cell_uuid, node.hypervisor_hostname)
    password = passwords.chosen(request, wanted)
    action = server_actions.EVACUATE
    loading.ask_for(request, home, action, operations.EVACUATE, memory, migration=migration, admin_password=password)
    if request.version >= (2, 14):
        return Response(200)
    return Response(200, passwords.shown(request, password))


def _check_rest(request: ApiRequest, server_id: str) -> None:
    """Raises InvalidState while an operation of the server is running: it may still change where the server is.

    An operation that needs the dead host is cancelled, so that it ends soon.
    """
    active = journal.active_of_server(request.services.api, server_id)
    if active is None:
        return
    if active.recipe == operations.DELETE:
        raise errors.InvalidState(f"Cannot evacuate instance {server_id}: it is being deleted.")
    if operations.present_name(active.recipe) not in WITH_GUEST and wanted_operations.request_cancel(
        request.services.api, active.migration_uuid
    ):
        notify_conductor(request.services, request.context, active)
        raise errors.InvalidState(
            f"Cannot evacuate instance {server_id} during {active.recipe}, which was cancelled. Try again in a moment."
        )
    raise errors.InvalidState(f"Cannot evacuate instance {server_id} while it is being moved. Cancel the move first.")


def _check_hosts(request: ApiRequest, home: Home, host: str | None) -> None:
    source = loading.check_host(home.instance)
    if host is not None:
        if host == source:
            raise errors.BadRequest("The target host can't be the same one.")
        if cell_records.cell_of_host(request.services.api, host) != home.cell_uuid:
            raise errors.HostNotFound(f"Compute host {host} could not be found in the server's cell.")
    service = hosts.service_of(request, source, home.cell_uuid)
    if service is not None and hosts.is_up(request, service):
        raise errors.BadRequest(f"Compute service of {source} is still in use.")
