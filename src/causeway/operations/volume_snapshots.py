"""Assisted snapshots. Block storage keeps a volume in a chain of files. To make a snapshot it has the hypervisor of a server that
uses the volume change to a new file; to delete one, it has the hypervisor merge two files.

Block storage waits for the snapshot's status: progress 90 % means that the hypervisor has done its part. A new file is empty at
first, so the server's record may name it as soon as the guest might write to it; that is the pivot. A merge changes no record
and no data, so a merge that breaks off does no harm.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from causeway import errors
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.states import TaskState
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.store.cell import block_devices

LOG = logging.getLogger(__name__)

TASKS = {TaskState.SNAPSHOTTING_VOLUME}
# The progress by which block storage knows that the hypervisor has done its part.
DONE = "90%"


@dataclass
class SnapshotMemory:
    """``resource_id``: the volume. ``new_file``: the file that the guest will write to; None if ``merged`` is merged into
    ``into``.

    ``volume``: as the server has it. ``is_done``: the hypervisor has done its part.
    """

    resource_id: str
    snapshot_id: str
    new_file: Given[str | None] = None
    merged: Given[str | None] = None
    into: Given[str | None] = None
    volume: BlockDevice | None = None
    is_done: bool = False


Snapshot: TypeAlias = OperationRun[SnapshotMemory]


class FindVolume(Step[Snapshot]):
    """Checks that the server has the volume and its host is up."""

    name = "FindVolume"
    reads = frozenset({"resource_id"})
    writes = frozenset({"volume"})

    def do(self, run: Snapshot) -> None:
        found = next((each for each in run.devices() if each.volume_id == run.memory.resource_id), None)
        if found is None:
            raise errors.VolumeNotFound(f"Instance {run.uuid} is not attached to volume {run.memory.resource_id}.")
        guests.require_host(run, run.instance().host or "")
        run.memory.volume = found


class ChangeFile(Step[Snapshot]):
    """Has the guest write to the new file, unless its hypervisor refuses."""

    name = "ChangeFile"
    reads = frozenset({"new_file", "volume"})
    writes = frozenset({"is_done"})
    pivots = True

    def where(self, run: Snapshot) -> str | None:
        return run.instance().host

    def do(self, run: Snapshot) -> None:
        instance, memory = run.instance(), run.memory
        host = instance.host or ""
        # The guest of a dead host may have written to the new file. That file includes everything below it, so it is the one to
        # use.
        memory.is_done = guests.is_dead(run, host) or run.computes.snapshot_volume(
            run.context,
            host,
            token=run.token(self.name),
            instance=instance,
            block_device=_volume(run),
            new_file=memory.new_file or "",
        )


class MergeFiles(Step[Snapshot]):
    """Has the hypervisor merge the files while the guest runs."""

    name = "MergeFiles"
    reads = frozenset({"merged", "into", "volume"})
    writes = frozenset({"is_done"})

    def where(self, run: Snapshot) -> str | None:
        return run.instance().host

    def do(self, run: Snapshot) -> None:
        instance, memory = run.instance(), run.memory
        host = instance.host or ""
        guests.require_host(run, host)
        moved = run.computes.merge_volume_files(
            run.context,
            host,
            token=run.token(self.name),
            instance=instance,
            block_device=_volume(run),
            merged=memory.merged,
            into=memory.into,
        )
        run.transferred(moved)
        memory.is_done = True


class EndSnapshot(Step[Snapshot]):
    """Records the file that the guest writes to, and reports the outcome to block storage."""

    name = "EndSnapshot"
    reads = frozenset({"snapshot_id", "new_file", "volume", "is_done"})

    def do(self, run: Snapshot) -> None:
        memory, volume = run.memory, _volume(run)
        if not memory.is_done:
            _failed(run, errors.GuestFailed(f"The hypervisor made no snapshot of volume {volume.volume_id}."))
            return
        if memory.new_file is not None:
            info = with_file(volume.connection_info or {}, memory.new_file)
            block_devices.update(run.database, volume.uuid, connection_info=info)
        _report(run, "deleting" if memory.new_file is None else "creating", DONE)
        endings.ended(run, TASKS)


class EndMerge(EndSnapshot):
    """The same for a merge, which can't be undone after it was reported."""

    name = "EndMerge"
    pivots = True


def with_file(connection_info: dict[str, Any], name: str) -> dict[str, Any]:
    """The connection info of the volume when the guest writes to the file ``name``, beside the present one."""
    data = {**(connection_info.get("data") or {}), "name": name, "format": "qcow2"}
    if data.get("device_path"):
        data["device_path"] = str(Path(data["device_path"]).with_name(name))
    return {**connection_info, "data": data}


def _volume(run: Snapshot) -> BlockDevice:
    if run.memory.volume is None:
        raise RuntimeError("the volume was not looked for")
    return run.memory.volume


def _report(run: Snapshot, status: str, progress: str | None = None) -> None:
    try:
        run.services.volumes.report_snapshot(run.context, run.memory.snapshot_id, status, progress)
    except (errors.ServiceRefused, errors.NotFound) as refusal:
        # Block storage no longer waits, or got the report of an earlier attempt.
        LOG.warning("Snapshot %s: %s", run.memory.snapshot_id, refusal.message)


def _failed(run: Snapshot, cause: errors.CausewayError) -> None:
    _report(run, "error_deleting" if run.memory.new_file is None else "error")
    endings.failed(run, cause, TASKS)


SNAPSHOT_VOLUME = Recipe(
    operations.SNAPSHOT_VOLUME,
    (FindVolume(), ChangeFile(), EndSnapshot()),
    pivot="ChangeFile",
    rolled_back=_failed,
    memory=SnapshotMemory,
)
MERGE_VOLUME_FILES = Recipe(
    operations.MERGE_VOLUME_FILES,
    (FindVolume(), MergeFiles(), EndMerge()),
    pivot="EndMerge",
    rolled_back=_failed,
    memory=SnapshotMemory,
)
