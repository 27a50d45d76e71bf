"""The services that handlers work with: one object per process, made when the API starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from causeway.api.long_polls import LongPolls
from causeway.clock import Clock
from causeway.policy import Enforcer
from causeway.rpc.conductor import ConductorClient
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow

if TYPE_CHECKING:
    from causeway.clients.image import ImageClient
    from causeway.clients.limits import LimitsClient
    from causeway.clients.network import NetworkClient
    from causeway.clients.placement import PlacementClient
    from causeway.clients.volume import VolumeClient


@dataclass
class ApiServices:
    """Everything behind the API. Shared by all threads that serve requests."""

    conf: cfg.ConfigOpts
    api: Database
    cells: Cells
    conductor: ConductorClient
    placement: PlacementClient
    images: ImageClient
    network: NetworkClient
    volumes: VolumeClient
    enforcer: Enforcer
    identity: Any = None
    #: only with unified limits
    limits: LimitsClient | None = None
    notifier: Any = None
    long_polls: LongPolls = field(default_factory=LongPolls)
    #: the clock that transfers are timed by
    clock: Clock = field(default_factory=Clock)

    def now_of_transfers(self) -> datetime:
        """The present time (UTC, without a zone) on the clock of transfers, to compute how long they will still take."""
        return utcnow() + timedelta(seconds=self.clock.skipped())
