"""The data path of a move: transfers the local disks of a stopped guest from host to host.

Two cells possibly share nothing but the image service, so the source uploads a disk as an image and the target downloads it
(`send`, `download`). If the hosts reach one another, as inside a cell, the source offers its disks over HTTP and the target
fetches them (`offer`, `fetch`). If the target can't fetch them, the source sends them as images (`send_offered`).

A root disk travels as the layer over its base image if the target can get that base image, else with all of its content. Each
ephemeral disk travels separately; swap is made anew. The state of the guest's firmware and TPM is small: it travels as one whole
file when the guest is off. The receiver checks the digests.
"""

from __future__ import annotations

import dataclasses
import uuid as uuids
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from causeway import errors, metrics
from causeway.compute.disks import bounds
from causeway.compute.disks.disk_offers import link_or_copy
from causeway.compute.handover import disk_fetch, sent_images
from causeway.compute.host import Host
from causeway.compute.host.transfer_progress import TransferProgress
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.hardware import firmware
from causeway.model.block_device import BlockDevice, is_volume_backed, local_disk_names
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, OfferedDisk, OperationToken, Snapshot
from causeway.model.shared_disk import SharedDisk
from causeway.model.warm import CHANGES
from causeway.virt.driver import KEPT_STATE, MEMORY, ROOT_DISK, DiskExport, GuestSpec, LocalDisk, Progress, RootDisk


@dataclass
class Received:
    """The disks of a guest that another host has sent. ``root_disk`` None: it is a volume, or the driver has taken it already."""

    root_disk: RootDisk | None
    local_disks: list[LocalDisk]
    kept_state: Path | None = None

    def put_into(self, spec: GuestSpec) -> None:
        spec.root_disk, spec.local_disks, spec.kept_state = self.root_disk, self.local_disks, self.kept_state


def send(
    host: Host,
    context: RequestContext,
    token: OperationToken,
    instance: Instance,
    image_id: str,
    name: str = ROOT_DISK,
    *,
    since: int | None = None,
) -> Snapshot:
    """Uploads a local disk of a stopped guest into an image that was made for it. ``since``: only the changes after that round.

    If the disk was sent before (the compute died after the upload), it is not sent again. Raises DiskTransferBroken if the image
    takes no more data because the image service died during an upload.
    """
    with _export(host, context, token, instance, name, since) as export:
        return _upload(host, context, token, image_id, export)


def send_memory(host: Host, context: RequestContext, token: OperationToken, image_id: str, memory: Path) -> Snapshot:
    """The same as `send`, for the file with a guest's memory."""
    return _upload(host, context, token, image_id, _export_of_memory(memory))


def send_offered(
    host: Host, context: RequestContext, token: OperationToken, image_ids: dict[str, str]
) -> dict[str, Snapshot]:
    """The same as `send`, for all disks that are offered for a move. Returns name -> snapshot."""
    offered = host.offers.find(token.operation_id)
    if offered is None:
        raise errors.DiskTransferFailed("The server's disks are not offered any more.", details=f"host {host.name}")
    sent = {}
    for disk in offered.disks:
        path = host.offers.path(token.operation_id, disk.name)
        if path is None or disk.name not in image_ids:
            raise errors.DiskTransferFailed(f"There is no image for disk {disk.name} of the server.")
        export = DiskExport(disk.name, path, disk.disk_format, disk.size, disk.base_image_id, disk.scale)
        sent[disk.name] = _upload(host, context, token, image_ids[disk.name], export)
    return sent


def _upload(host: Host, context: RequestContext, token: OperationToken, image_id: str, export: DiskExport) -> Snapshot:
    snapshot = Snapshot(image_id, export.disk_format, export.size, export.base_image_id, scale=export.scale)
    try:
        report = _with_fault_point("disk.upload.in", progress(host, context, token, "sent", export.scale))
        snapshot.sha256 = host.images.upload(context, image_id, export.path, export.size, report)
    except errors.ServiceRefused as refusal:
        snapshot.sha256 = sent_images.digest_of_present(host, context, image_id, export.path, refusal)
    return snapshot


def download(
    host: Host, context: RequestContext, token: OperationToken, instance: Instance, name: str, snapshot: Snapshot
) -> Path:
    """Downloads a snapshot of the disk ``name`` and checks its digest. Returns the file.

    `ImageCache.discard_received` deletes it if it is unused.
    """
    path = host.image_cache.received(snapshot.image_id, instance.uuid)
    bounds.check(instance, name, snapshot.size)
    known = sent_images.expected(snapshot)
    may_wait = snapshot.disk_format != CHANGES
    arriving = progress(host, context, token, "received", snapshot.scale, follows_rate=may_wait)
    report = _with_fault_point("disk.download.in", arriving)
    host.images.download(context, snapshot.image_id, path, report, image=known)
    return path


def offer(
    host: Host,
    context: RequestContext,
    token: OperationToken,
    instance: Instance,
    block_devices: list[BlockDevice],
    since: int | None = None,
    memory: Path | None = None,
    shared: Collection[str] = (),
) -> DiskOffer:
    """Offers the local disks of a stopped guest to another host. If they were offered before, nothing is copied again.

    ``since``: the last round that the target has; only later changes are offered. ``memory``: the file with the guest's memory,
    if the guest does not boot at the target; the file stays in its place. ``shared``: disks that the target takes over where
    they are.
    """

    def export(name: str) -> AbstractContextManager[DiskExport]:
        if name == MEMORY and memory is not None:
            return nullcontext(_export_of_memory(memory))
        return _export(host, context, token, instance, name, since)

    names = [name for name in travelling(block_devices, with_swap=memory is not None) if name not in shared]
    names += [KEPT_STATE] if firmware.of_instance(instance).keeps_state else []
    names += [MEMORY] if memory is not None else []
    made = host.offers.make(token.operation_id, instance.uuid, names, export)
    return DiskOffer(f"{host.disk_server.url}/{token.operation_id}", made.secret, made.disks)


def travelling(block_devices: list[BlockDevice], *, with_swap: bool = False) -> list[str]:
    """Returns the local disks whose content moves with the server: swap only if the guest does not boot (``with_swap``)."""
    names = [] if is_volume_backed(block_devices) else [ROOT_DISK]
    return names + [name for name, device in local_disk_names(block_devices) if device.is_ephemeral or with_swap]


def _export_of_memory(memory: Path) -> DiskExport:
    return DiskExport(MEMORY, memory, "raw", memory.stat().st_size, is_kept=True)


def _export(
    host: Host, context: RequestContext, token: OperationToken, instance: Instance, name: str, since: int | None
) -> AbstractContextManager[DiskExport]:
    if name == KEPT_STATE:
        return host.driver.export_kept_state(instance)
    if since is not None:
        return nullcontext(host.rounds.changes_since(token.operation_id, name, since))
    flatten = name != ROOT_DISK or not base_is_available(host, context, instance)
    return host.driver.export_disk(instance, name, flatten=flatten)


def fetch(
    host: Host,
    context: RequestContext,
    token: OperationToken,
    instance: Instance,
    offered: DiskOffer,
    *,
    patience: float | None = None,
) -> dict[str, Path]:
    """Fetches the disks that another host offers. Returns name -> file.

    `ImageCache.discard_received` deletes files that are not used. ``patience``: the transfer fails after so many seconds without
    data; None: ``disk_transfer_patience``.
    """
    # Only whole disks respect the rate of a drain: while the last changes or memory travel, the guest is off or stands still.
    may_wait = any(disk.disk_format != CHANGES and disk.name not in (KEPT_STATE, MEMORY) for disk in offered.disks)
    report = progress(host, context, token, "received", follows_rate=may_wait)
    paths: dict[str, Path] = {}
    done = 0
    for disk in offered.disks:
        bounds.check(instance, disk.name, disk.size)
    for disk in offered.disks:
        of_all = partial(
            lambda before, scale, come: report(before + round(come * scale), offered.shown), done, disk.scale
        )
        paths[disk.name] = _received_path(host, token, instance, disk.name)
        disk_fetch.fetch(host, offered, disk, paths[disk.name], of_all, patience)
        done += disk.shown
    return paths


def take(host: Host, token: OperationToken, instance: Instance, offered: DiskOffer) -> dict[str, Path]:
    """The same as `fetch`, for disks that this host itself offers."""
    paths = {}
    for disk in offered.disks:
        path = host.offers.path(token.operation_id, disk.name)
        if path is None:
            raise errors.DiskTransferFailed(f"A disk of server {instance.uuid} is not offered any more.")
        # The offer stays until the guest is made, since an interrupted attempt begins again from it. So a driver can take the
        # file that it gets, but must not change the content, which is also that of the offer.
        paths[disk.name] = received = _received_path(host, token, instance, disk.name)
        received.unlink(missing_ok=True)
        link_or_copy(path, received)
    return paths


def _received_path(host: Host, token: OperationToken, instance: Instance, name: str) -> Path:
    return host.image_cache.received(str(uuids.uuid5(uuids.UUID(token.operation_id), name)), instance.uuid)


def received(
    host: Host,
    context: RequestContext,
    token: OperationToken,
    instance: Instance,
    sent: Mapping[str, Snapshot | OfferedDisk],
    paths: dict[str, Path],
    wanted: list[LocalDisk],
    shared: dict[str, SharedDisk] | None = None,
) -> Received:
    """Returns the received files (``paths``) in the form from which the driver makes the guest.

    ``wanted``: the local disks of the new guest except its root disk. Those that the source did not send are made anew, unless
    they are ``shared``: in storage that both hosts reach.
    """
    shared = shared or {}
    kept_state = paths.pop(KEPT_STATE, None)
    missing = paths.keys() - {disk.name for disk in wanted} - {ROOT_DISK}
    if missing:
        raise errors.DiskTransferFailed(
            f"The source sent disks that server {instance.uuid} does not have.",
            details=f"sent, but not wanted: {missing}",
        )
    whole = {name: _whole(host, context, token, name, sent[name], path) for name, path in paths.items()}
    root_disk = None
    if (path := whole.pop(ROOT_DISK, None)) is not None:
        base_image_id = sent[ROOT_DISK].base_image_id
        root_disk = RootDisk(
            base=host.image_cache.fetch(context, base_image_id) if base_image_id is not None else None,
            base_image_id=base_image_id,
            snapshot=path,
            snapshot_format=_format_of(sent[ROOT_DISK]),
            is_copy=_is_copy(sent[ROOT_DISK]),
            size_gb=instance.flavor.root_gb,
        )
    elif ROOT_DISK in shared:
        root_disk = RootDisk(None, None, size_gb=instance.flavor.root_gb, shared=shared[ROOT_DISK])
    local = [
        dataclasses.replace(
            disk,
            snapshot=whole[disk.name],
            snapshot_format=_format_of(sent[disk.name]),
            is_copy=_is_copy(sent[disk.name]),
        )
        if whole.get(disk.name) is not None
        else dataclasses.replace(disk, shared=shared.get(disk.name))
        for disk in wanted
    ]
    return Received(root_disk, local, kept_state)


def _whole(
    host: Host, context: RequestContext, token: OperationToken, name: str, sent: Snapshot | OfferedDisk, path: Path
) -> Path | None:
    """Returns the whole disk; None if the driver has taken it already. If only the last changes arrived, applies them first."""
    if not _is_copy(sent):
        return path
    return host.copies.complete(token, name, path, partial(host.image_cache.fetch, context))


def _format_of(sent: Snapshot | OfferedDisk) -> str:
    """Returns the format of the whole disk. If only changes were sent, it is the format of the copy that the driver made."""
    return "qcow2" if _is_copy(sent) else sent.disk_format


def _is_copy(sent: Snapshot | OfferedDisk) -> bool:
    """Whether only the last changes were sent. Whatever the source says, the whole disk is then one of this host's copies."""
    return sent.disk_format == CHANGES


def base_is_available(host: Host, context: RequestContext, instance: Instance) -> bool:
    if not instance.image_ref:
        return False
    try:
        return host.images.show_of_server(context, instance.image_ref).status == "active"
    except (errors.ImageNotFound, errors.Forbidden):
        return False


def _with_fault_point(point: str, report: Progress) -> Progress:
    """Returns ``report`` with a fault point in the middle of the transfer."""

    def reported(done: int, total: int) -> None:
        injector.reach(point)
        report(done, total)

    return reported


def progress(
    host: Host,
    context: RequestContext,
    token: OperationToken,
    direction: str,
    scale: float = 1.0,
    *,
    follows_rate: bool = True,
) -> Progress:
    """Returns a function that counts transferred bytes, and reports them to the conductor from time to time.

    The function raises an error, which ends the transfer, if the transfer is no longer wanted: it was cancelled, its server is
    being deleted, or its move was taken over (`TransferProgress`).
    """
    report = TransferProgress(host, context, token, is_joined=False, follows_rate=follows_rate)
    counted = 0

    def transferred(done: int, total: int) -> None:
        nonlocal counted
        done, total = round(done * scale), round(total * scale)
        metrics.MOVE_BYTES.labels(direction).inc(max(0, done - counted))
        counted = done
        report(done, total)

    return transferred
