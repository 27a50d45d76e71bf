"""Action evacuate: a server whose host is down comes up on another host of its cell."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import to_bool
from causeway.api.servers import create, hosts, loading, schemas_verbs
from causeway.api.servers.loading import Home
from causeway.model import server_actions
from causeway.model.block_device import is_volume_backed
from causeway.model.states import VmState
from causeway.store.api import cells as cell_records
from causeway.store.api import journal
from causeway.store.cell import block_devices


@handler(body=schemas_verbs.EVACUATE)
def evacuate(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["evacuate"]
    home = loading.take(request, server_id, "os_compute_api:os-evacuate", server_actions.EVACUATE, lockable=False)
    host = wanted.get("host")
    _check_hosts(request, home, host)
    if to_bool(wanted.get("onSharedStorage", False)) and not is_volume_backed(
        block_devices.of_instance(home.database, server_id)
    ):
        raise errors.BadRequest(
            "Invalid state of instance files on shared storage: the hosts of this cloud share none."
        )
    if journal.active_of_server(request.services.api, server_id) is not None:
        # Whoever drives the move still decides where the server is.
        raise errors.InvalidState(
            f"Cannot evacuate instance {server_id} while it is being moved. Cancel the move first."
        )
    loading.begin_action(request, home, server_actions.EVACUATE)
    # From 2.95 on a server stays off until its user starts it.
    power_on = home.instance.vm_state is not VmState.STOPPED and request.version < (2, 95)
    request.services.conductor.evacuate_instance(
        request.context,
        instance_uuid=server_id,
        host=host,
        forced=to_bool(wanted.get("force", False)),
        power_on=power_on,
    )
    if request.version >= (2, 14):
        return Response(200)
    conf = request.services.conf
    if not conf.api.enable_instance_password:
        return Response(200, {})
    return Response(200, {"adminPass": wanted.get("adminPass") or create.password(conf.password_length)})


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
