"""Swaps a server's volume for another one: the block storage service asks for this when it moves a volume in use.

Source: Compute API reference, "Update a volume attachment".
"""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.servers import hosts, loading
from causeway.api.servers.loading import Home
from causeway.clients.volume import Volume
from causeway.model import operations, server_actions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.operations.volume_swap import SwapMemory


def swap(request: ApiRequest, home: Home, device: BlockDevice | None, old_id: str, new_id: str) -> None:
    """Asks for the operation that swaps the volumes. Raises Nova's errors if that is not possible.

    ``device``: the server's device of the old volume; None if it has none.
    """
    volumes, context, action = request.services.volumes, request.context, server_actions.SWAP_VOLUME
    old = volumes.show(context, old_id)
    if not old.migration_status:
        raise errors.Conflict(f"volume {old_id} is not migrating; this API should only be called by Cinder")
    try:
        new = volumes.show(context, new_id)
    except errors.VolumeNotFound as missing:
        raise errors.BadRequest(missing.message) from missing
    loading.check_action(request, home.instance, action)
    _check_volumes(request, home.instance, old, new)
    if device is None:
        raise errors.VolumeNotFound(
            f"Instance {home.instance.uuid} is not attached to volume {old_id}: volume_id not found."
        )
    hosts.check_up(request, loading.check_host(home.instance), home.cell_uuid)
    loading.ask_for(request, home, action, operations.SWAP_VOLUME, SwapMemory(old_id, new_id, new.size))


def _check_volumes(request: ApiRequest, instance: Instance, old: Volume, new: Volume) -> None:
    reason = None
    if not old.attachments:
        reason = f"volume {old.id} is not attached: its status is {old.status}"
    elif instance.uuid not in {each["server_id"] for each in old.attachments}:
        reason = f"volume {old.id} is attached to another instance"
    elif new.attachments:
        reason = f"volume {new.id} is attached already"
    elif new.size < old.size:
        reason = f"volume {new.id} is smaller than volume {old.id}: {new.size} GiB, not {old.size}"
    elif old.encrypted or new.encrypted:
        reason = "encrypted volumes can't be swapped"
    elif not request.services.conf.cinder.cross_az_attach and new.availability_zone != instance.availability_zone:
        reason = f"volume {new.id} is in availability zone {new.availability_zone}, and the instance is not"
    elif old.multiattach and len(old.attachments) > 1:
        reason = f"volume {old.id} is attached to several instances: it can't be swapped in one of them"
    if reason is not None:
        raise errors.BadRequest(f"Invalid volume: {reason}.")
