"""The data path of a move: how the local disks of a stopped guest get from host to host.

Between cells only the image service is shared, so a disk goes up as an image and comes down again. A root disk goes as the
layer over its base image when the target can get that base image too, else with everything in it. Ephemeral disks go along,
an image each; swap is made anew. The receiver checks the digest.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from pathlib import Path

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.outcomes import MoveToken, Snapshot
from causeway.virt.driver import ROOT_DISK, LocalDisk, Progress, RootDisk

LOG = logging.getLogger(__name__)

# Seconds between two reports of how far a transfer has come.
REPORT_INTERVAL = 2.0


def send(
    host: Host, context: RequestContext, token: MoveToken, instance: Instance, image_id: str, name: str = ROOT_DISK
) -> Snapshot:
    """Uploads a local disk of a stopped guest into an image that was made for it.

    Sent before (the compute died after the upload): nothing is sent again.
    """
    flatten = name != ROOT_DISK or not _base_is_available(host, context, instance)
    with host.driver.export_disk(instance, name, flatten=flatten) as export:
        snapshot = Snapshot(image_id, export.disk_format, export.size, export.base_image_id)
        try:
            host.images.upload(context, image_id, export.path, export.size, progress(host, context, token))
        except errors.ServiceRefused:
            if host.images.show(context, image_id).status != "active":
                raise
    return snapshot


def receive(host: Host, context: RequestContext, token: MoveToken, instance: Instance, snapshot: Snapshot) -> RootDisk:
    """Downloads a snapshot and, if it needs one, its base image."""
    base: Path | None = None
    if snapshot.base_image_id is not None:
        base = host.image_cache.fetch(context, snapshot.base_image_id)
    return RootDisk(
        base=base,
        base_image_id=snapshot.base_image_id,
        snapshot=_download(host, context, token, instance, snapshot),
        snapshot_format=snapshot.disk_format,
        size_gb=instance.flavor.root_gb,
    )


def receive_local(
    host: Host,
    context: RequestContext,
    token: MoveToken,
    instance: Instance,
    wanted: list[LocalDisk],
    snapshots: dict[str, Snapshot],
) -> list[LocalDisk]:
    """The local disks of the new guest, with what was on them at the source; those that the source had not are new."""
    missing = snapshots.keys() - {disk.name for disk in wanted}
    if missing:
        raise errors.DiskTransferFailed(
            f"Server {instance.uuid} has no place for all of its disks.", details=f"sent, but not wanted: {missing}"
        )
    return [
        dataclasses.replace(
            disk,
            snapshot=_download(host, context, token, instance, snapshots[disk.name]),
            snapshot_format=snapshots[disk.name].disk_format,
        )
        if disk.name in snapshots
        else disk
        for disk in wanted
    ]


def _download(host: Host, context: RequestContext, token: MoveToken, instance: Instance, snapshot: Snapshot) -> Path:
    path = host.image_cache.path(f"{snapshot.image_id}.part-of-{instance.uuid}")
    host.images.download(context, snapshot.image_id, path, progress(host, context, token))
    return path


def discard(host: Host, instance_uuid: str) -> None:
    """Deletes what transfers of a server's disk left in the cache, those of an earlier life of this compute among them."""
    for path in host.image_cache.directory.glob(f"*.part-of-{instance_uuid}*"):
        path.unlink(missing_ok=True)


def _base_is_available(host: Host, context: RequestContext, instance: Instance) -> bool:
    if not instance.image_ref:
        return False
    try:
        return host.images.show(context, instance.image_ref).status == "active"
    except (errors.ImageNotFound, errors.Forbidden):
        return False


def progress(host: Host, context: RequestContext, token: MoveToken) -> Progress:
    """Reports bytes done of bytes total to the conductor, not more often than every `REPORT_INTERVAL` seconds.

    A transfer that nobody wants any more (cancelled, its server deleted, its move taken over) is ended by what this raises.
    """
    lock = threading.Lock()
    next_report = time.monotonic() + REPORT_INTERVAL

    def report(done: int, total: int) -> None:
        nonlocal next_report
        with lock:
            if time.monotonic() < next_report:
                return
            next_report = time.monotonic() + REPORT_INTERVAL
        try:
            host.conductor.report_progress(context, token=token, bytes_done=done, bytes_total=total)
        except (errors.RpcTimeout, errors.ServiceFailed, errors.DatabaseFailed) as failure:
            # Nobody's move fails because its progress can't be shown.
            LOG.warning("Progress of migration %s was not reported: %s", token.migration_uuid, failure.message)

    return report
