"""Makes images of servers whose root disk is a volume. Such an image has no data, but names a snapshot of each volume.

Servers made from it get volumes made from the snapshots. The API has already made the record of the image.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from causeway import errors
from causeway.clients.volume_snapshots import Snapshot
from causeway.context import admin_context
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.states import TaskState
from causeway.model.things import Thing
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings

TASKS = {TaskState.IMAGE_SNAPSHOT_PENDING}
# The properties of a device that an image has, apart from its size and source.
_KEPT = ("boot_index", "device_name", "delete_on_termination", "tag", "disk_bus", "device_type", "guest_format")


@dataclass
class VolumeImageMemory:
    """``snapshots``: volume -> its snapshot. ``root``: the name of the root disk.

    ``mapping``: what the image will say about the devices, once all snapshots are there.
    """

    image_id: str
    name: str
    root: Given[str] = "/dev/vda"
    snapshots: dict[str, str] = field(default_factory=dict)
    mapping: list[dict[str, Any]] = field(default_factory=list)


Run: TypeAlias = OperationRun[VolumeImageMemory]


class SnapshotVolumes(Step[Run]):
    """Makes a snapshot of every volume. They belong to the requester."""

    name = "SnapshotVolumes"
    reads = frozenset({"image_id", "name"})
    writes = frozenset({"mapping", "snapshots"})
    makes = frozenset({Thing.IMAGE, Thing.SNAPSHOT})

    def do(self, run: Run) -> None:
        memory, volumes, present = run.memory, run.services.volumes, run.devices()
        with run.event(run.kind.event, run.instance(tags=False).host or ""):
            if run.is_repeated:
                memory.snapshots |= {each.volume_id: each.id for each in _made(run)}
            for device in present:
                if device.volume_id is not None and device.volume_id not in memory.snapshots:
                    memory.snapshots[device.volume_id] = volumes.create_snapshot(
                        run.context, device.volume_id, name=_name(run), description=_mark(run)
                    )
            for snapshot_id in memory.snapshots.values():
                volumes.wait_for_snapshot(run.context, snapshot_id)
        memory.mapping = [_entry(device, memory.snapshots) for device in present]

    def undo(self, run: Run) -> None:
        for snapshot_id in {*run.memory.snapshots.values(), *(each.id for each in _made(run))}:
            run.services.volumes.delete_snapshot(run.context, snapshot_id)
        run.services.images.delete(run.context, run.memory.image_id)


def _name(run: Run) -> str:
    return f"snapshot for {run.memory.name}"


def _mark(run: Run) -> str:
    """The description of the snapshots, by which they are found: the service chooses their ids, and its answer may be lost."""
    return f"Made by Compute for image {run.memory.image_id}."


def _made(run: Run) -> list[Snapshot]:
    """The snapshots that were made, recorded or not."""
    return run.services.volumes.snapshots_named(
        admin_context(request_id=run.context.request_id), _name(run), _mark(run)
    )


class NameSnapshots(Step[Run]):
    """Writes the snapshots into the image. The user has the image from here on, even if the server is being deleted."""

    name = "NameSnapshots"
    reads = frozenset({"image_id", "mapping", "root"})

    def do(self, run: Run) -> None:
        memory, images = run.memory, run.services.images
        if not (run.is_repeated and images.show_of_server(run.context, memory.image_id).status == "active"):
            named = {"bdm_v2": "True", "block_device_mapping": json.dumps(memory.mapping)}
            images.set_properties(run.context, memory.image_id, named | {"root_device_name": memory.root})
            images.stream(run.context, memory.image_id, list, 0)
        run.pivot()
        endings.ended(run, TASKS)


def _entry(device: BlockDevice, snapshots: dict[str, str]) -> dict[str, Any]:
    """How the image describes a device, in Nova's form. Local disks are made anew, as in Nova."""
    kept = {name: getattr(device, name) for name in _KEPT} | {"volume_size": device.volume_size}
    if device.volume_id is None:
        return kept | {"source_type": device.source_type, "destination_type": device.destination_type}
    made_of = {"source_type": "snapshot", "destination_type": "volume", "snapshot_id": snapshots[device.volume_id]}
    return kept | made_of | {"volume_type": device.volume_type}


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Restores the server's state. Only the image failed."""
    if not run.steps:
        run.services.images.delete(run.context, run.memory.image_id)
    endings.failed(run, cause, TASKS)


def _undo_late(run: Run) -> None:
    """Deletes the snapshots that no image names."""
    try:
        named = str(
            run.services.images.show_of_server(admin_context(), run.memory.image_id).properties.get(
                "block_device_mapping", ""
            )
        )
    except errors.ImageNotFound:
        named = ""
    for snapshot in _made(run):
        if snapshot.id not in named:
            run.services.volumes.delete_snapshot(admin_context(), snapshot.id)


CREATE_VOLUME_IMAGE = Recipe(
    operations.CREATE_VOLUME_IMAGE,
    (SnapshotVolumes(), NameSnapshots()),
    pivot="NameSnapshots",
    rolled_back=_rolled_back,
    undo_late=_undo_late,
    memory=VolumeImageMemory,
)
