"""The volumes of a server that is migrated live. They are attached to both hosts for a while."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from causeway.clients.rights import OF_SERVER
from causeway.context import admin_context
from causeway.model.block_device import BlockDevice
from causeway.parts import devices
from causeway.parts.run import ServerRun


def attach_at_target(
    run: ServerRun[Any],
    device: BlockDevice,
    volume_id: str,
    known: str | None,
    connector: dict[str, Any],
    note: Callable[[str], None],
) -> BlockDevice:
    """The device as the target has it. ``known``: its attachment; None to make one, which is passed to ``note``."""
    volumes = run.services.volumes
    if known is None:
        made = volumes.create_attachment(
            run.context, volume_id, run.uuid, connector, device.device_name, called_as=OF_SERVER
        )
        note(made.id)
    else:
        made = volumes.get_attachment(run.context, known)
    return dataclasses.replace(device, attachment_id=made.id, connection_info=made.connection_info)


def devices_at_target(present: list[BlockDevice], there: list[BlockDevice]) -> list[BlockDevice]:
    """A server's block devices as the target has them. ``there``: its volumes with their attachments there."""
    by_uuid = {device.uuid: device for device in there}
    return [
        dataclasses.replace(
            device,
            attachment_id=by_uuid[device.uuid].attachment_id,
            connection_info=by_uuid[device.uuid].connection_info,
        )
        if device.uuid in by_uuid
        else device
        for device in present
    ]


def delete_orphaned_attachments(run: ServerRun[Any], present: list[BlockDevice]) -> None:
    """Deletes attachments that an earlier attempt made without recording their ids."""
    if not any(device.is_volume for device in present):
        return
    known = {device.attachment_id for device in present}
    ours = admin_context(request_id=run.context.request_id)
    noted = devices.noted_by_moves(run.services, run.uuid) | {each.target for each in run.memory.attachments}
    volumes = {device.volume_id for device in present if device.is_volume}
    for found in run.services.volumes.attachments_of_server(run.context, run.uuid):
        # Whoever has a volume may attach it in the name of any server.
        if found.volume_id in volumes and found.id not in known | noted:
            run.services.volumes.delete_attachment(ours, found.id)
