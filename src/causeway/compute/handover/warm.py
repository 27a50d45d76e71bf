"""A host's part in copying the disks of a running guest before it moves. `moves.steps.warm` sends the orders.

Round by round, the source makes its disks readable (`rounds`), and the target adds the changes to its copies (`copies`). If the
hosts reach one another, the target fetches the parts of a round directly. Otherwise each part travels as an image.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from causeway import errors, metrics
from causeway.compute.disks import bounds, changes
from causeway.compute.disks.packing import ZSTD
from causeway.compute.handover import disk_transfer, sent_images
from causeway.compute.handover.part_fetch import open_part
from causeway.compute.handover.peers import Peer
from causeway.compute.handover.round_progress import RoundProgress
from causeway.compute.host import Host
from causeway.compute.host.fence import fenced, fenced_each_time
from causeway.compute.host.transfer_progress import TransferProgress
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken, Snapshot
from causeway.model.warm import CHANGES, CopiedDisk, CopyRound, RoundReceived
from causeway.virt.driver import ROOT_DISK, BaseImage

# An upload of fewer bytes says nothing about the speed of the link, because the call itself takes most of the time.
_MEASURED_BYTES = 1 << 20


class WarmEndpoint:
    """RPC: the orders of rounds, while the guest still runs."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.fence = host.fence
        # The seconds per byte of the last upload; None if there was none.
        self._seconds_per_byte: float | None = None

    @fenced_each_time
    def begin_round(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        since: int | None,
        with_swap: bool = False,
    ) -> CopyRound:
        host = self._host
        if not host.driver.supports_warm_copy:
            raise errors.WarmCopyImpossible("The server's host can't copy disks while their guest runs.")
        names = disk_transfer.travelling(block_devices, with_swap=with_swap)
        with host.lock(instance.uuid):
            flatten = ROOT_DISK in names and not disk_transfer.base_is_available(host, context, instance)
            return host.rounds.begin(token, instance, names, since=since, flatten=flatten, url=host.disk_server.url)

    @fenced_each_time
    def limit_writes(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,
        instance: Instance,
        bytes_per_second: int,
    ) -> None:
        with self._host.lock(instance.uuid):
            self._host.rounds.limit_writes(token.operation_id, bytes_per_second)

    @fenced_each_time
    def receive_round(
        self, context: RequestContext, *, token: OperationToken, instance: Instance, copied: CopyRound
    ) -> RoundReceived:
        """Fetches the missing parts of a round.

        Raises HostUnreachable if this host can't reach the source, HostNotTrusted if one host refuses the other's certificate.
        """
        host = self._host
        self._begin(token, instance, copied)
        shown = RoundProgress(disk_transfer.progress(host, context, token, "received"), copied)
        sent = 0
        with Peer(host, copied.secret) as peer:

            def opened(disk: CopiedDisk, part: int) -> AbstractContextManager[changes.Source]:
                shown.begin(disk, part)
                return open_part(host, peer, copied, disk, part)

            for disk in copied.disks:
                came = host.copies.receive(token, copied, disk, opened, self._base_of(context), shown.arrived)
                sent += round(came * disk.scale)
        return RoundReceived(sent, list(changes.CODINGS))

    @fenced_each_time
    def send_part(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        number: int,
        name: str,
        part: int,
        image_id: str,
        codings: list[str] | None = None,
    ) -> Snapshot:
        """Uploads a part of a disk into an image that was made for it. Does not upload a part that was uploaded before.

        ``codings``: those that the target can read. The first upload is not compressed, to measure how fast uploads are.
        """
        host, later = self._host, self._seconds_per_byte
        accepts = [each for each in codings or () if each != ZSTD or later is not None]
        with tempfile.NamedTemporaryFile(
            dir=host.image_cache.directory, prefix=".", suffix=f".part-of-{instance.uuid}.partial"
        ) as file:
            file.writelines(host.rounds.read_part(token.operation_id, number, name, part, accepts, later or 0.0))
            file.flush()
            size = Path(file.name).stat().st_size
            snapshot = Snapshot(image_id, CHANGES, size)
            try:
                report = TransferProgress(host, context, token, is_joined=False, is_shown=False)
                began = host.clock.monotonic()
                snapshot.sha256 = host.images.upload(context, image_id, Path(file.name), size, report)
                if size >= _MEASURED_BYTES:
                    self._seconds_per_byte = (host.clock.monotonic() - began) / size
            except errors.ServiceRefused as refusal:
                snapshot.sha256 = sent_images.digest_of_present(host, context, image_id, Path(file.name), refusal)
        return snapshot

    @fenced_each_time
    def receive_part(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        copied: CopyRound,
        name: str,
        part: int,
        sent: Snapshot,
    ) -> RoundReceived:
        """Downloads a part of a disk and adds it to the copy. Does not download a part that was added before."""
        host = self._host
        self._begin(token, instance, copied)
        disk = next(each for each in copied.disks if each.name == name)

        @contextmanager
        def opened(_disk: CopiedDisk, _part: int) -> Iterator[changes.Source]:
            path = host.image_cache.received(sent.image_id, instance.uuid)
            known = sent_images.expected(sent)
            report = TransferProgress(host, context, token, is_joined=False, at_once=part > 0)
            shown = RoundProgress(report, copied)
            shown.begin(disk, part)
            host.images.download(context, sent.image_id, path, shown.downloaded, image=known)
            try:
                with path.open("rb") as file:
                    yield file
            finally:
                path.unlink(missing_ok=True)

        came = host.copies.receive(
            token,
            copied,
            disk,
            opened,
            self._base_of(context),
            lambda travelled, _of_disk: metrics.MOVE_BYTES.labels("received").inc(travelled * disk.scale),
            until=part + 1,
        )
        return RoundReceived(round(came * disk.scale), list(changes.CODINGS))

    @fenced
    def end_rounds(self, context: RequestContext, *, token: OperationToken, instance: Instance) -> None:  # noqa: ARG002
        """Deletes the rounds at the source, because the guest stays, or its whole disks travel while it is off.

        A shelve orders this if its upload ended without this host's answer; a live migration, if its source was fenced when it
        was undone.
        """
        with self._host.lock(instance.uuid):
            self._host.departures.end(token.operation_id, instance.uuid)
            self._host.rounds.discard(token.operation_id)
            self._host.rounds.discard_unowned(instance.uuid)

    @fenced
    def discard_copies(self, context: RequestContext, *, token: OperationToken, instance: Instance) -> None:  # noqa: ARG002
        """Deletes the copies at the target."""
        with self._host.lock(instance.uuid):
            self._host.copies.discard(token.operation_id)

    def _begin(self, token: OperationToken, instance: Instance, copied: CopyRound) -> None:
        """Prepares the copies for a round. Raises DiskTransferFailed for disks that the server can't have."""
        self._require_support()
        for disk in copied.disks:
            bounds.check_copied(instance, disk)
        self._host.copies.begin(token, instance.uuid, copied)

    def _require_support(self) -> None:
        if not self._host.driver.supports_warm_copy:
            raise errors.WarmCopyImpossible("The chosen host can't receive the disks of a guest that still runs.")

    def _base_of(self, context: RequestContext) -> partial[BaseImage]:
        return partial(self._host.image_cache.fetch, context)
