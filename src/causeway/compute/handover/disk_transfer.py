"""The data path of a move: how the local disks of a stopped guest get from host to host.

Between cells only the image service is shared, so a disk goes up as an image and comes down again (`send`, `download`). Hosts
of one cell reach each other: the source offers its disks over HTTP, and the target fetches them (`offer`, `fetch`).

A root disk goes as the layer over its base image when the target can get that base image too, else with everything in it.
Ephemeral disks go along, each by itself; swap is made anew. The receiver checks the digest.
"""

from __future__ import annotations

import dataclasses
import shutil
import uuid as uuids
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from causeway import errors, metrics
from causeway.compute.handover import disk_fetch
from causeway.compute.host import Host
from causeway.compute.host.transfer_progress import TransferProgress
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.block_device import BlockDevice, is_volume_backed, local_disk_names
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, MoveToken, OfferedDisk, Snapshot
from causeway.virt.driver import ROOT_DISK, DiskExport, LocalDisk, Progress, RootDisk


def send(
    host: Host, context: RequestContext, token: MoveToken, instance: Instance, image_id: str, name: str = ROOT_DISK
) -> Snapshot:
    """Uploads a local disk of a stopped guest into an image that was made for it.

    Sent before (the compute died after the upload): nothing is sent again. Raises DiskTransferBroken if the image takes no
    data any more, because the image service died in the middle of an upload.
    """
    flatten = name != ROOT_DISK or not _base_is_available(host, context, instance)
    with host.driver.export_disk(instance, name, flatten=flatten) as export:
        snapshot = Snapshot(image_id, export.disk_format, export.size, export.base_image_id)
        try:
            report = _reaching("disk.upload.in", progress(host, context, token, "sent"))
            snapshot.sha256 = host.images.upload(context, image_id, export.path, export.size, report)
        except errors.ServiceRefused as refusal:
            status = host.images.show(context, image_id).status
            if status == "queued":
                raise
            if status != "active":
                raise errors.DiskTransferBroken(
                    "The image service broke off the upload of a disk of the server.",
                    details=f"image {image_id} is {status}: {refusal.details}",
                ) from refusal
    return snapshot


def download(host: Host, context: RequestContext, token: MoveToken, instance: Instance, snapshot: Snapshot) -> Path:
    """Downloads a snapshot, which must be what the sender sent; the file is `discard`ed if nobody takes it."""
    path = host.image_cache.received(snapshot.image_id, instance.uuid)
    sent = ImageMeta(snapshot.image_id, size=snapshot.size, os_hash_algo="sha256", os_hash_value=snapshot.sha256)
    known = sent if snapshot.sha256 is not None else None
    report = _reaching("disk.download.in", progress(host, context, token, "received"))
    host.images.download(context, snapshot.image_id, path, report, image=known)
    return path


def offer(
    host: Host, context: RequestContext, token: MoveToken, instance: Instance, block_devices: list[BlockDevice]
) -> DiskOffer:
    """Makes the local disks of a stopped guest ready for another host of the cell to fetch; made before: nothing is copied."""
    names = [] if is_volume_backed(block_devices) else [ROOT_DISK]
    # Swap is made anew.
    names += [name for name, device in local_disk_names(block_devices) if device.is_ephemeral]
    flatten = ROOT_DISK in names and not _base_is_available(host, context, instance)

    def export(name: str) -> AbstractContextManager[DiskExport]:
        return host.driver.export_disk(instance, name, flatten=flatten or name != ROOT_DISK)

    made = host.offers.make(token.move_id, instance.uuid, names, export)
    return DiskOffer(f"{host.disk_server.url}/{token.move_id}", made.secret, made.disks)


def fetch(
    host: Host, context: RequestContext, token: MoveToken, instance: Instance, offered: DiskOffer
) -> dict[str, Path]:
    """Fetches what another host offers; name -> file. The files are `discard`ed if nobody takes them."""
    report = progress(host, context, token, "received")
    paths: dict[str, Path] = {}
    done = 0
    for disk in offered.disks:
        of_all = partial(lambda before, come: report(before + come, offered.size), done)
        paths[disk.name] = _received_path(host, token, instance, disk.name)
        disk_fetch.fetch(host, offered, disk, paths[disk.name], of_all)
        done += disk.size
    return paths


def take(host: Host, token: MoveToken, instance: Instance, offered: DiskOffer) -> dict[str, Path]:
    """Like `fetch`, of what this host itself offers."""
    paths = {}
    for disk in offered.disks:
        path = host.offers.path(token.move_id, disk.name)
        if path is None:
            raise errors.DiskTransferFailed(f"A disk of server {instance.uuid} is not offered any more.")
        # Offered until the guest is there: a making that was broken off begins again from it. So drivers take what they get
        # and leave other names of it as they are.
        paths[disk.name] = received = _received_path(host, token, instance, disk.name)
        received.unlink(missing_ok=True)
        try:
            received.hardlink_to(path)
        except OSError:
            shutil.copy2(path, received)
    return paths


def _received_path(host: Host, token: MoveToken, instance: Instance, name: str) -> Path:
    return host.image_cache.received(str(uuids.uuid5(uuids.UUID(token.move_id), name)), instance.uuid)


def root_disk(
    host: Host, context: RequestContext, instance: Instance, sent: Snapshot | OfferedDisk, path: Path
) -> RootDisk:
    """The root disk that came, with its base image if it needs one."""
    base = host.image_cache.fetch(context, sent.base_image_id) if sent.base_image_id is not None else None
    return RootDisk(
        base=base,
        base_image_id=sent.base_image_id,
        snapshot=path,
        snapshot_format=sent.disk_format,
        size_gb=instance.flavor.root_gb,
    )


def with_content(
    instance: Instance, wanted: list[LocalDisk], paths: dict[str, Path], formats: dict[str, str]
) -> list[LocalDisk]:
    """The local disks of the new guest, with what was on them at the source; those that the source had not are new."""
    missing = paths.keys() - {disk.name for disk in wanted}
    if missing:
        raise errors.DiskTransferFailed(
            f"Server {instance.uuid} has no place for all of its disks.", details=f"sent, but not wanted: {missing}"
        )
    return [
        dataclasses.replace(disk, snapshot=paths[disk.name], snapshot_format=formats[disk.name])
        if disk.name in paths
        else disk
        for disk in wanted
    ]


def _base_is_available(host: Host, context: RequestContext, instance: Instance) -> bool:
    if not instance.image_ref:
        return False
    try:
        return host.images.show(context, instance.image_ref).status == "active"
    except (errors.ImageNotFound, errors.Forbidden):
        return False


def _reaching(point: str, report: Progress) -> Progress:
    """``report`` with a fault point in the middle of the transfer: where part of it is through."""

    def reported(done: int, total: int) -> None:
        injector.reach(point)
        report(done, total)

    return reported


def progress(host: Host, context: RequestContext, token: MoveToken, direction: str) -> Progress:
    """Counts what is sent or received, and reports it to the conductor now and then (`TransferProgress`).

    A transfer that nobody wants any more (cancelled, its server deleted, its move taken over) is ended by what this raises.
    """
    report = TransferProgress(host, context, token, is_joined=False)
    counted = 0

    def transferred(done: int, total: int) -> None:
        nonlocal counted
        metrics.MOVE_BYTES.labels(direction).inc(max(0, done - counted))
        counted = done
        report(done, total)

    return transferred
