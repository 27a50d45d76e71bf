"""The volumes that a user gave to a server whose build failed: they stay reserved for the server until it is deleted.

Otherwise another server could take them while the one that failed still names them, and may delete them with itself.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.clients.rights import OF_SERVER, named
from causeway.devices import device_records
from causeway.model.block_device import BlockDevice
from causeway.operations.build_run import BuildRun

LOG = logging.getLogger(__name__)


def given(present: list[BlockDevice]) -> list[BlockDevice]:
    return [device for device in present if is_given(device)]


def is_given(device: BlockDevice) -> bool:
    return device.is_volume and device.source_type == "volume" and device.volume_id is not None


def keep(run: BuildRun, present: list[BlockDevice]) -> list[BlockDevice]:
    """Gives each of these volumes one attachment, without a host. Returns them. May be repeated.

    A volume that can't be reserved, perhaps because another server has it, is named without an attachment.
    """
    kept = given(present)
    for device in kept:
        try:
            device.attachment_id = _reserved(run, device.volume_id or "")
        except errors.TakenOver:
            raise
        except errors.CausewayError as failure:
            LOG.warning(
                "Server %s was not built, and volume %s may go: %s", run.uuid, device.volume_id, failure.message
            )
        else:
            device.connection_info = None
    return kept


def release(run: BuildRun, present: list[BlockDevice]) -> None:
    """Releases the volumes of a server that was deleted meanwhile."""
    for device in given(present):
        device_records.release_reservations(run.services, run.context, run.uuid, device.volume_id or "", set())


def _reserved(run: BuildRun, volume_id: str) -> str:
    """The one attachment of the server to the volume, which no host uses."""
    volumes = run.services.volumes
    found = volumes.attachments_of_server(run.context, run.uuid, volume_id=volume_id)
    kept = next((each.id for each in found if each.status == "reserved"), None)
    if kept is None:
        for each in found:
            if each.status == "attaching":
                # The service does not reserve a volume that is being attached a second time.
                volumes.complete_attachment(run.context, each.id)
        called_as = OF_SERVER if found else named(volume_id)
        known: set[str | None] = {each.id for each in found}
        kept = device_records.reserve_volume(
            run.services, run.context, volume_id, run.uuid, known.copy, called_as=called_as
        )
    for each in found:
        if each.id != kept:
            volumes.delete_attachment(run.context, each.id)
    return kept
