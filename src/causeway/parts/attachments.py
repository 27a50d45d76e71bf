"""Volumes of servers that leave a host: they stay reserved, and are connected anew where the server comes up."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.parts import devices
from causeway.parts.services import ConductorServices
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
    """Every connected attachment is replaced by one that is not; a volume is never without one. May be repeated.

    ``in_doubt``: the volume service is asked of those that are not known to be connected, for a host may have done so and
    then failed. Raises StateChanged if somebody else has replaced one meanwhile.
    """
    for device in present:
        if not device.is_volume or device.volume_id is None:
            continue
        if device.connection_info is None and not (in_doubt and _must_be_replaced(services, context, device)):
            continue
        old = device.attachment_id
        known = {other.attachment_id for other in present}
        new = devices.reserve_volume(services, context, device.volume_id, device.instance_uuid, known, ours=True)
        if not block_devices.swap_attachment(database, device.uuid, old, new):
            # Who was only slow comes after another conductor that did the same.
            services.volumes.delete_attachment(context, new)
            raise errors.StateChanged(
                f"Volume {device.volume_id} of server {device.instance_uuid} has got another attachment meanwhile."
            )
        device.attachment_id, device.connection_info = new, None
        if old is not None:
            services.volumes.delete_attachment(context, old)


def _must_be_replaced(services: ConductorServices, context: RequestContext, device: BlockDevice) -> bool:
    """Whether an attachment is connected, or gone. One whose guest never opened it can be replaced afterwards."""
    if device.attachment_id is None:
        return True
    try:
        attachment = services.volumes.get_attachment(context, device.attachment_id)
    except errors.VolumeNotFound:
        return True
    if attachment.status == "attaching":
        # The service reserves no volume a second time that is being attached, and one without an attachment is anybody's.
        services.volumes.complete_attachment(context, device.attachment_id)
    return attachment.status != "reserved"
