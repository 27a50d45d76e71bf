"""The disks of a guest that another host hands over: as an offer that is fetched directly, or, from another cell, as images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from causeway.compute.handover import disk_fetch, disk_transfer
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, OfferedDisk, OperationToken, Snapshot
from causeway.virt.driver import ROOT_DISK

# Seconds for which an unreachable source of another cell is retried. They are few because its disks can also go through the image
# service.
PATIENCE = 10.0


@dataclass
class HandedOver:
    """The snapshots of a guest's disks, or an offer of them.

    ``snapshot``: of the root disk. ``disks``: the snapshots of the others, by name. ``offer``: offers all of them instead.
    """

    snapshot: Snapshot | None
    disks: dict[str, Snapshot] = field(default_factory=dict)
    offer: DiskOffer | None = None

    @property
    def sent(self) -> Mapping[str, Snapshot | OfferedDisk]:
        return self._images if self.offer is None else {disk.name: disk for disk in self.offer.disks}

    @property
    def _images(self) -> dict[str, Snapshot]:
        return self.disks | ({ROOT_DISK: self.snapshot} if self.snapshot is not None else {})

    @property
    def size(self) -> int | None:
        """How many bytes all disks have together; None if there are no disks."""
        return sum(each.shown for each in self.sent.values()) if self.sent else None

    def receive(
        self, host: Host, context: RequestContext, token: OperationToken, instance: Instance
    ) -> dict[str, Path]:
        """Downloads or fetches the disks. Returns name -> file. Raises DiskTransferBroken if an offer can't be fetched."""
        if self.offer is not None:
            patience = host.conf.disk_transfer_patience
            if not _is_inside_cell(instance):
                patience = min(PATIENCE, patience)
            return disk_transfer.fetch(host, context, token, instance, self.offer, patience=patience)
        return {
            name: disk_transfer.download(host, context, token, instance, name, each)
            for name, each in self._images.items()
        }


def _is_inside_cell(instance: Instance) -> bool:
    context = instance.migration_context
    return context is not None and context.source_cell == context.dest_cell


class OfHost(Protocol):
    """An endpoint of a host."""

    @property
    def host(self) -> Host: ...


def discard_rounds(endpoint: OfHost, *, token: OperationToken, instance: Instance, **_others: object) -> None:
    """Deletes the rounds at the source. Called when it is recorded that the guest has left."""
    with endpoint.host.lock(instance.uuid):
        endpoint.host.rounds.discard(token.operation_id)


def discard_copies(endpoint: OfHost, *, token: OperationToken, instance: Instance, **_others: object) -> None:
    """Deletes the copies at the target. Called when it is recorded that the guest has arrived, so that nobody makes it again."""
    with endpoint.host.lock(instance.uuid):
        endpoint.host.copies.discard(token.operation_id)


def end_transfer(
    endpoint: OfHost,
    *,
    token: OperationToken,
    instance: Instance,
    offer: DiskOffer | None = None,
    same_host: bool = False,
    **_others: object,
) -> None:
    """The same as `discard_copies`; also ends the source's offer, because nobody fetches the disks again.

    ``same_host``: this host is the source.
    """
    discard_copies(endpoint, token=token, instance=instance)
    if same_host:
        endpoint.host.offers.end(token.operation_id)
    elif offer is not None and offer.disks:
        disk_fetch.release(endpoint.host, offer)
