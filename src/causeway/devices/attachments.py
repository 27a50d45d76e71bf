"""Volumes of servers that leave a host: they stay reserved, and are connected again where the server comes up."""

from __future__ import annotations

from causeway import errors
from causeway.clients.rights import OF_SERVER
from causeway.context import RequestContext
from causeway.devices import device_records
from causeway.model.block_device import BlockDevice
from causeway.running.services import ConductorServices
from causeway.store.cell import block_devices
from causeway.store.database import Database


def reserve_anew(
    services: ConductorServices,
    context: RequestContext,
    database: Database,
    present: list[BlockDevice],
    *,
    in_doubt: bool = False,
) -> None:
    """Replaces every connected attachment by an unconnected one. A volume always has one of them. May be repeated.

    ``in_doubt``: also asks the volume service about attachments that are not known to be connected, since a host may have
    connected one and then failed. Raises StateChanged if another process has replaced one meanwhile.
    """
    for device in present:
        if not device.is_volume or device.volume_id is None:
            continue
        if device.connection_info is None and not (in_doubt and _must_be_replaced(services, context, device)):
            continue
        old = device.attachment_id
        known = {other.attachment_id for other in present}
        new = device_records.reserve_volume(
            services, context, device.volume_id, device.instance_uuid, known.copy, called_as=OF_SERVER
        )
        if not block_devices.swap_attachment(database, device.uuid, old, new):
            # This conductor was slow, and another one has done the same.
            services.volumes.delete_attachment(context, new)
            raise errors.StateChanged(
                f"Volume {device.volume_id} of server {device.instance_uuid} has got another attachment meanwhile."
            )
        device.attachment_id, device.connection_info = new, None
        if old is not None:
            services.volumes.delete_attachment(context, old)


def _must_be_replaced(services: ConductorServices, context: RequestContext, device: BlockDevice) -> bool:
    """Whether an attachment is connected, or does not exist.

    Completes one that its guest never opened, so that it can be replaced.
    """
    if device.attachment_id is None:
        return True
    try:
        attachment = services.volumes.get_attachment(context, device.attachment_id)
    except errors.VolumeNotFound:
        return True
    if attachment.status == "attaching":
        # The service does not reserve a volume that is being attached a second time, and anyone can reserve a volume without
        # attachment.
        services.volumes.complete_attachment(context, device.attachment_id)
    return attachment.status != "reserved"
