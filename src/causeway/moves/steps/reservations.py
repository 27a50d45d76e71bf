"""Reservations of volumes, and those that the move has made but not recorded.

The volume service chooses the id of an attachment. If the conductor dies or the answer is lost before the id is in the journal,
the move does not know the attachment. To find it, the move asks the service which attachments exist.
"""

from __future__ import annotations

from causeway.clients.rights import OF_SERVER
from causeway.clients.volume import Attachment
from causeway.model.block_device import BlockDevice
from causeway.moves.move_run import Run


def volumes(devices: list[BlockDevice]) -> list[tuple[BlockDevice, str]]:
    """Returns those of the block devices that are volumes, each with the volume's id."""
    return [(device, device.volume_id) for device in devices if device.is_volume and device.volume_id is not None]


def reserve(run: Run, volume_id: str, known: set[str | None]) -> str:
    """Returns an unconnected attachment of a volume to the server: an existing one that is not ``known``, or a new one."""
    for found in orphaned_attachments(run, known):
        if found.volume_id == volume_id:
            return found.id
    return run.services.volumes.create_attachment(run.context, volume_id, run.uuid, called_as=OF_SERVER).id


def reserve_once(run: Run, volume_id: str, devices: list[BlockDevice]) -> str:
    """The same as `reserve`, for a step that may be repeated. The first attempt does not look for existing attachments."""
    if not run.is_repeated:
        return run.services.volumes.create_attachment(run.context, volume_id, run.uuid, called_as=OF_SERVER).id
    pairs = run.memory.attachments
    written = {id for pair in pairs for id in (pair.source, pair.target)}
    return reserve(run, volume_id, {device.attachment_id for device in devices} | written)


def delete_orphaned_attachments(run: Run, known: set[str | None]) -> None:
    """Deletes every attachment of the server that is not ``known``. Connected ones are in use and stay."""
    for found in orphaned_attachments(run, known):
        run.unguarded.volumes.delete_attachment(run.context, found.id)


def orphaned_attachments(run: Run, known: set[str | None]) -> list[Attachment]:
    found = run.unguarded.volumes.attachments_of_server(run.context, run.uuid)
    return [each for each in found if each.id not in known and not each.is_connected]
