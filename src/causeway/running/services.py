"""The services of a conductor."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from oslo_config import cfg

from causeway.clients.image import ImageClient
from causeway.clients.keys import KeyClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient
from causeway.clients.volume import VolumeClient
from causeway.clock import Clock
from causeway.model import versions
from causeway.notify.notifier import Notifier
from causeway.rpc.compute import ComputeClient
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.scheduler import SchedulerClient
from causeway.rpc.transport import Transports
from causeway.running.by_cell import ByCell
from causeway.sagas.lives import Life
from causeway.store.cells import Cells
from causeway.store.database import Database


@dataclass
class ConductorServices:
    """The databases, queues and services that a super conductor reaches. It has no state that must outlive the process."""

    host: str
    conf: cfg.ConfigOpts
    api: Database
    cells: Cells
    transports: Transports
    scheduler: SchedulerClient
    placement: PlacementClient
    images: ImageClient
    network: NetworkClient
    volumes: VolumeClient
    keys: KeyClient
    notifier: Notifier
    #: this conductor as an owner in the journal
    life: Life
    # Set when the conductor stops; ends all waits.
    stopping: threading.Event = field(default_factory=threading.Event)
    #: the clock of transfers
    clock: Clock = field(default_factory=Clock)
    _computes: dict[str, ComputeClient] = field(default_factory=dict)
    _by_cell: dict[str, ByCell] = field(default_factory=dict)

    def by_cell(self, name: str) -> ByCell:
        """The threads by cell of one kind of work."""
        return self._by_cell.setdefault(name, ByCell(name))

    @property
    def conductor(self) -> ConductorClient:
        """All conductors, including this one."""
        return ConductorClient(self.transports.get(self.conf.transport_url))

    def computes(self, cell_uuid: str) -> ComputeClient:
        """The computes of a cell, over the cell's queue."""
        url = self.cells.mapping(cell_uuid).transport_url
        if url not in self._computes:
            self._computes[url] = ComputeClient(
                self.transports.get(url), versions.cap(self.conf.upgrade_levels.compute)
            )
        return self._computes[url]
