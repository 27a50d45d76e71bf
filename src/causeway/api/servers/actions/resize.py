"""Actions resize, migrate, confirmResize, revertResize: everything that can be refused is refused here.

Order of checks and codes: Compute API reference, "Resize Server". A refusal leaves the server as it was.
`causeway.moves.requests` writes what is accepted to the journal.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import flavors_and_images, hosts, loading, schemas
from causeway.api.servers.loading import Home
from causeway.hardware import firmware
from causeway.model import server_actions
from causeway.model.block_device import is_volume_backed
from causeway.model.flavor import Flavor
from causeway.model.server_actions import ServerAction
from causeway.moves import requests as moves
from causeway.policy import CROSS_CELL_RESIZE
from causeway.store.api import cells as cell_records
from causeway.store.cell import block_devices

LOG = logging.getLogger(__name__)

_ACCELERATORS = "accel:device_profile"


@handler(body=schemas.RESIZE, statuses=(202,), answer=EMPTY)
def resize(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["resize"]
    home = loading.load_for_action(
        request, server_id, "os_compute_api:servers:resize", server_actions.RESIZE, tags=False
    )
    _check_up(request, home)
    flavor = flavors_and_images.flavor_for(request, str(wanted["flavorRef"]))
    check_flavor(request, home, flavor)
    disk_config = wanted.get("OS-DCF:diskConfig")
    moves.request_resize(
        request.services,
        request.context,
        home.instance,
        flavor=flavor,
        host=None,
        cross_cell_allowed=may_leave_its_cell(request, home),
        cell_uuid=home.cell_uuid,
        node=home.node,
        auto_disk_config=None if disk_config is None else disk_config == "AUTO",
    )
    return Response(202)


@handler(body=schemas.MIGRATE, statuses=(202,), answer=EMPTY)
def migrate(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["migrate"] if request.version >= (2, 56) else None
    host = (wanted or {}).get("host")
    home = loading.load_for_action(
        request, server_id, "os_compute_api:os-migrate-server:migrate", server_actions.MIGRATE, tags=False
    )
    _check_up(request, home)
    if host is not None:
        request.authorize("os_compute_api:os-migrate-server:migrate:host", loading.target_of(home.instance))
    cross_cell_allowed = may_leave_its_cell(request, home)
    if host is not None:
        _check_target(request, home, host, cross_cell_allowed)
    moves.request_resize(
        request.services,
        request.context,
        home.instance,
        flavor=None,
        host=host,
        cross_cell_allowed=cross_cell_allowed,
        cell_uuid=home.cell_uuid,
        node=home.node,
    )
    return Response(202)


@handler(body=schemas.bare("confirmResize"), statuses=(204,), answer=EMPTY)
def confirm(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_for_action(
        request, server_id, "os_compute_api:servers:confirm_resize", server_actions.CONFIRM_RESIZE, tags=False
    )
    finished = moves.finished_move(request.services.api, home.instance)
    migration = finished.migration
    if migration.source_compute:
        # Bug 1855927: the server would be stuck in confirming.
        try:
            hosts.check_up(request, migration.source_compute, migration.source_cell, or_fenced=True)
        except errors.DatabaseFailed as failure:
            raise _source_cell_down(server_id, "confirmed") from failure
    moves.request_confirm(request.services, request.context, home.instance, cell_uuid=home.cell_uuid, finished=finished)
    return Response(204)


@handler(body=schemas.bare("revertResize"), statuses=(202,), answer=EMPTY)
def revert(request: ApiRequest, server_id: str) -> Response:
    home = loading.load_for_action(
        request, server_id, "os_compute_api:servers:revert_resize", server_actions.REVERT_RESIZE, tags=False
    )
    if request.services.cells.any_down:
        source_cell = moves.finished_move(request.services.api, home.instance).migration.source_cell
        if source_cell is not None and request.services.cells.is_down(source_cell):
            raise _source_cell_down(server_id, "reverted")
    moves.request_revert(request.services, request.context, home.instance, cell_uuid=home.cell_uuid)
    return Response(202)


def _source_cell_down(server_id: str, what: str) -> errors.CellDown:
    return errors.CellDown(
        f"The resize of instance {server_id} can't be {what} now: the cell that it came from does not answer. Try again later."
    )


def check_movable(request: ApiRequest, home: Home, action: ServerAction) -> None:
    """Raises Conflict unless the server's states and its host allow a move."""
    loading.check_action(request, home.instance, action)
    _check_up(request, home)


def _check_up(request: ApiRequest, home: Home) -> None:
    # Bugs 1856925, 1938326: a source that is down is refused, one that is only disabled is not.
    home.node = hosts.check_up_with_node(request, loading.check_host(home.instance), home.cell_uuid)


def may_leave_its_cell(request: ApiRequest, home: Home) -> bool:
    """Whether policy allows moves to other cells.

    Ports with resource requests are allowed; Nova refuses them (bug 1907522).
    """
    return request.allows(CROSS_CELL_RESIZE, loading.target_of(home.instance))


def _check_target(request: ApiRequest, home: Home, host: str, cross_cell_allowed: bool) -> None:
    if host == home.instance.host:
        raise errors.BadRequest("The target host can't be the same one.")
    try:
        cell_uuid = cell_records.cell_of_host(request.services.api, host)
    except errors.HostNotFound as missing:
        raise errors.BadRequest(missing.message) from missing
    if cell_uuid != home.cell_uuid and not cross_cell_allowed:
        # Callers that may not use other cells don't learn which hosts are in them.
        raise errors.BadRequest(f"Compute host {host} could not be found.")
    if cell_uuid == home.cell_uuid:
        return
    silent = errors.CellDown(f"Compute host {host} is in a cell that does not answer now. Try again later.")
    if not request.services.cells.answers(cell_uuid):
        raise silent


def check_flavor(request: ApiRequest, home: Home, flavor: Flavor) -> None:
    """Raises BadRequest or OverQuota unless the server may have this flavor."""
    instance = home.instance
    old = instance.flavor

    def has_volume_root() -> bool:
        return is_volume_backed(block_devices.of_instance(home.database, instance.uuid))

    if flavor.root_gb == 0 and old.root_gb != 0 and not has_volume_root():
        raise errors.FlavorNotUsable("Resize to zero disk flavor is not allowed.")
    if flavor.disabled:
        raise errors.FlavorNotUsable(f"Flavor {flavor.flavorid} could not be found.")
    if flavor.flavorid == old.flavorid:
        raise errors.FlavorNotUsable("When resizing, instances must change flavor!")
    if _ACCELERATORS in flavor.extra_specs or _ACCELERATORS in old.extra_specs:
        raise errors.FlavorNotUsable("Resize is not supported for instances with accelerators.")
    flavors_and_images.check_hardware(request, flavor, instance.image_meta)
    firmware.check_resize(instance, flavor)
    quota.check_resize(request.services, instance, flavor, volume_backed=has_volume_root)
    if instance.image_meta is not None:
        try:
            flavors_and_images.check_fits(flavor, instance.image_meta, volume_backed=False)
        except errors.FlavorNotUsable:
            # The image's needs don't matter to a root volume, whose size stays as it is.
            if not has_volume_root():
                raise
            flavors_and_images.check_fits(flavor, instance.image_meta, volume_backed=True)
