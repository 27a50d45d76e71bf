"""Actions shelve, shelveOffload, unshelve."""

from __future__ import annotations

from functools import partial

from causeway import errors
from causeway.api import zones
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import flavors_and_images, loading, schemas
from causeway.api.servers.actions import images, schemas_verbs
from causeway.api.servers.loading import Home
from causeway.model import operations, server_actions
from causeway.model.block_device import is_volume_backed
from causeway.model.shelved import IMAGE
from causeway.model.states import VmState
from causeway.moves.without_guest.unshelve_memory import UnshelveAcrossCellsMemory, UnshelveMemory
from causeway.operations.shelve import ShelveMemory
from causeway.policy import CROSS_CELL_UNSHELVE
from causeway.store.api import cells as cell_records
from causeway.store.api import mappings
from causeway.store.cell import block_devices

RULE = "os_compute_api:os-shelve:"


@handler(body=schemas.bare("shelve"), statuses=(202,), answer=EMPTY)
def shelve(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_for_action(request, server_id, RULE + "shelve", server_actions.SHELVE)
    # A volume-backed server needs no image, and is offloaded at once.
    offloads = request.services.conf.shelved_offload_time == 0
    was_running = home.instance.vm_state is VmState.ACTIVE
    if is_volume_backed(block_devices.of_instance(home.database, server_id)):
        memory = ShelveMemory(None, was_running, offloads=True)
        loading.ask_for(request, home, server_actions.SHELVE, operations.SHELVE, memory)
    else:
        name = f"{home.instance.display_name}-shelved"
        make = partial(ShelveMemory, was_running=was_running, offloads=offloads)
        images.ask_with_image(request, home, server_actions.SHELVE, operations.SHELVE, name, {}, make)
    return Response(202)


@handler(body=schemas.bare("shelveOffload"), statuses=(202,), answer=EMPTY)
def offload(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_for_action(request, server_id, RULE + "shelve_offload", server_actions.SHELVE_OFFLOAD)
    loading.ask_for(request, home, server_actions.SHELVE_OFFLOAD, operations.SHELVE_OFFLOAD, ShelveMemory())
    return Response(202)


@handler(body=schemas_verbs.UNSHELVE, statuses=(202,), answer=EMPTY)
def unshelve(request: ApiRequest, server_id: str) -> Response:
    wanted = (request.body["unshelve"] if request.version >= (2, 77) else None) or {}
    home = loading.load_for_action(request, server_id, RULE + "unshelve", server_actions.UNSHELVE)
    host = wanted.get("host")
    if host is not None:
        request.authorize(RULE + "unshelve_to_host", loading.target_of(home.instance))
    may_leave_cell = request.allows(CROSS_CELL_UNSHELVE, loading.target_of(home.instance))
    target_cell = _check_target(request, home, host, wanted, may_leave_cell=may_leave_cell) if wanted else None
    if home.instance.vm_state is VmState.SHELVED_OFFLOADED:
        quota.check_unshelve(
            request.services,
            home.instance,
            volume_backed=lambda: is_volume_backed(block_devices.of_instance(home.database, server_id)),
        )
    image_id = home.instance.system_metadata.get(IMAGE)
    if image_id is not None:
        _check_image(request, home, image_id)
    recipe = operations.UNSHELVE
    memory: UnshelveMemory | UnshelveAcrossCellsMemory = UnshelveMemory(
        host, home.instance.host is None, image_id, may_leave_cell=may_leave_cell and host is None
    )
    if target_cell is not None and target_cell != home.cell_uuid:
        recipe = operations.UNSHELVE_ACROSS_CELLS
        memory = UnshelveAcrossCellsMemory(
            home.cell_uuid, target_cell, unshelve=UnshelveMemory(host, image_id=image_id)
        )
    if "availability_zone" not in wanted:
        loading.ask_for(request, home, server_actions.UNSHELVE, recipe, memory)
        return Response(202)
    zone = wanted["availability_zone"]

    def pin() -> None:
        with request.services.api.write() as connection:
            mappings.set_in_spec_in(connection, server_id, availability_zone=zone)

    loading.ask_for(
        request,
        home,
        server_actions.UNSHELVE,
        recipe,
        memory,
        prepare=pin,
        pinned_availability_zone=zone,
    )
    return Response(202)


def _check_image(request: ApiRequest, home: Home, image_id: str) -> None:
    """Raises BadRequest if the server can't be made from its shelved image. If that is missing, its operation fails later."""
    try:
        image = request.services.images.show_of_server(request.context, image_id)
    except (errors.ImageNotFound, errors.Forbidden):
        return
    flavors_and_images.check_bootable(request, image)
    flavors_and_images.check_fits(home.instance.flavor, image, volume_backed=False)


def _check_target(
    request: ApiRequest, home: Home, host: str | None, wanted: dict[str, str | None], *, may_leave_cell: bool
) -> str | None:
    """The cell of the named host; None if no host is named. Null as a zone unpins the server (2.91).

    Raises Conflict if the server is not offloaded or the host is not in its zone, BadRequest if zone or host do not exist.
    Callers that may not use other cells don't learn which hosts are in them.
    """
    instance, zone = home.instance, wanted.get("availability_zone")
    if instance.vm_state is not VmState.SHELVED_OFFLOADED:
        raise errors.Conflict(
            f"Cannot unshelve instance {instance.uuid} to another availability zone or host: it is not offloaded "
            f"(its vm_state is {instance.vm_state.value})."
        )
    if zone is not None and zone not in zones.available(request.services):
        raise errors.BadRequest(f"The requested availability zone is not available: {zone}")
    if host is None:
        return None
    try:
        cell_uuid = cell_records.cell_of_host(request.services.api, host)
    except errors.HostNotFound as missing:
        raise errors.BadRequest(missing.message) from missing
    if cell_uuid != home.cell_uuid and not may_leave_cell:
        raise errors.BadRequest(f"Compute host {host} could not be found in the server's cell.")
    pinned = zone if "availability_zone" in wanted else instance.pinned_availability_zone
    of_host = zones.zone_of_host(request.services, host)
    if pinned is not None and of_host != pinned:
        raise errors.Conflict(f"Host {host} is in availability zone {of_host}, not in {pinned}.")
    return cell_uuid
