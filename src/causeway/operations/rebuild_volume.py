"""Rebuilds a server whose root disk is a volume: an image, perhaps the same one, is written to the volume (2.93)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from causeway import errors
from causeway.model import operations
from causeway.model.states import VmState
from causeway.model.things import Thing
from causeway.operations import rebuild
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import guests
from causeway.servers.undo_late import undo_attachments

GIB = 1 << 30


@dataclass
class RebuildVolumeMemory(rebuild.RebuildMemory):
    """``image_id``: the image to write. ``volume_id``: of the root disk. ``begun``: the server has been changed."""

    image_id: Given[str] = ""
    volume_id: Given[str] = ""
    begun: bool = False


Run: TypeAlias = OperationRun[RebuildVolumeMemory]


class ReleaseRootVolume(Step[Run]):
    """Powers the guest off and disconnects its root volume: no host may have it open while it is written."""

    name = "ReleaseRootVolume"
    reads = frozenset({"image_id", "volume_id"})
    writes = frozenset({"begun"})
    makes = frozenset({Thing.ATTACHMENT})

    def where(self, run: Run) -> str | None:
        return run.instance().host

    def do(self, run: Run) -> None:
        instance, present = run.instance(), run.devices()
        host, token = instance.host or "", run.token(self.name)
        root = next(device for device in present if device.volume_id == run.memory.volume_id)
        if not run.memory.begun:
            # If the image can't be used, the guest must stay as it is.
            _image_size(run)
            guests.require_host(run, host)
            rebuild.announce(run, instance, present)
            run.memory.begun = True
        guests.require_host(run, host)
        run.computes.stop_guest(run.context, host, token=token, instance=instance)
        run.computes.disconnect_volume(run.context, host, token=token, instance=instance, block_device=root)
        guests.keep_volumes_reserved(run, [root])


class WriteImage(Step[Run]):
    """Has the volume service write the image to the root volume. There is no way back from here: its content is lost."""

    name = "WriteImage"
    reads = frozenset({"image_id", "volume_id"})

    def do(self, run: Run) -> None:
        volumes, volume_id = run.services.volumes, run.memory.volume_id
        gib = -(-_image_size(run) // GIB)
        timeout = run.unguarded.conf.reimage_timeout_per_gb * max(gib, 1)
        with run.event("reimage_root_volume", run.instance().host or ""):
            if not run.is_repeated or not volumes.is_being_filled(run.context, volume_id):
                volumes.reimage(run.context, volume_id, run.memory.image_id)
            volumes.wait_reimaged(run.context, volume_id, timeout=timeout)


def _image_size(run: Run) -> int:
    """The size of the image in bytes. Raises BadRequest if the image can't be used."""
    image = run.services.images.show(run.context, run.memory.image_id)
    if image.status != "active":
        raise errors.BadRequest(f"Image {image.id} is not active: server {run.uuid} can't be rebuilt with it.")
    return image.size or 0


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Sets the server to ERROR if writing began, since the content of the volume is unknown.

    It may be rebuilt again or deleted.
    """
    rebuild.failed(run, cause, **({"vm_state": VmState.ERROR} if run.memory.begun else {}))


REBUILD_VOLUME = Recipe(
    operations.REBUILD_VOLUME,
    (ReleaseRootVolume(), WriteImage(), rebuild.RebuildGuest(announces=False), rebuild.EndRebuild()),
    pivot="EndRebuild",
    rolled_back=_rolled_back,
    undo_late=undo_attachments,
    memory=RebuildVolumeMemory,
)
