"""What all parts of a compute host share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from oslo_concurrency import lockutils
from oslo_config import cfg

from causeway import errors
from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.vendordata import Vendordata
from causeway.clients.volume import VolumeClient
from causeway.clock import Clock
from causeway.compute.disks.copies import Copies
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.disk_server import DiskServer
from causeway.compute.disks.image_cache import ImageCache
from causeway.compute.disks.rounds import Rounds
from causeway.compute.host.claims import Claims
from causeway.compute.host.departures import Departures
from causeway.compute.host.failed_builds import FailedBuilds
from causeway.compute.host.fence import Fence
from causeway.compute.host.own_folders import why_unwritable
from causeway.compute.host.vif_events import VifEvents
from causeway.model.instance import Instance
from causeway.rpc.cell_conductor import CellConductorClient
from causeway.virt.driver import Driver


@dataclass
class Host:
    """One compute host: its hypervisor, and its clients of other services."""

    name: str
    conf: cfg.ConfigOpts
    driver: Driver
    images: ImageClient
    network: NetworkClient
    volumes: VolumeClient
    vendordata: Vendordata
    conductor: CellConductorClient
    image_cache: ImageCache
    fence: Fence
    claims: Claims
    departures: Departures
    offers: DiskOffers
    rounds: Rounds
    copies: Copies
    disk_server: DiskServer
    vif_events: VifEvents = field(default_factory=VifEvents)
    #: set when the service ends; ends all waits
    stopping: threading.Event = field(default_factory=threading.Event)
    #: the folders that it must be able to write
    own_folders: Sequence[Path] = ()
    failed_builds: FailedBuilds = field(default_factory=FailedBuilds)
    #: why another compute service may own its guests, in a sentence; None: it knows of none
    other_owner: str | None = None
    #: the clock of transfers
    clock: Clock = field(default_factory=Clock)

    def lock(self, instance_uuid: str) -> AbstractContextManager[object]:
        """The lock of one server: one thread at a time works on it on this host."""
        held: AbstractContextManager[object] = lockutils.lock(f"{self.name}-{instance_uuid}")
        return held

    def require_open(self) -> None:
        """Raises ClaimRefused if the host must not be chosen for a guest: it can't write its folders, or has another owner."""
        if self.other_owner is not None:
            raise errors.ClaimRefused(
                "The chosen host takes no servers at present.", details=f"host {self.name}: {self.other_owner}"
            )
        lack = why_unwritable(self.own_folders)
        if lack is not None:
            raise errors.ClaimRefused("The chosen host can't write its disks.", details=f"host {self.name}: {lack}")

    def shutdown_timeout(self, instance: Instance) -> float:
        """Seconds that a guest has to shut down. The image may ask for more or less than the host's option."""
        wanted = instance.image_meta.properties.get("os_shutdown_timeout") if instance.image_meta else None
        return float(wanted if wanted is not None else self.conf.shutdown_timeout)
