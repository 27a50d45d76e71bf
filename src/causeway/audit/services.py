"""The databases and services that an audit asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from oslo_config import cfg

from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient
from causeway.clients.volume import VolumeClient
from causeway.rpc.compute import ComputeClient
from causeway.store.cells import Cells
from causeway.store.database import Database


@dataclass
class AuditServices:
    """The databases and services of one cloud. ``computes``: the computes of a cell, by its uuid."""

    conf: cfg.ConfigOpts
    api: Database
    cells: Cells
    computes: Callable[[str], ComputeClient]
    placement: PlacementClient
    images: ImageClient
    network: NetworkClient
    volumes: VolumeClient
    # Set when the auditing process has to stop, so that the audit waits no longer.
    stopping: threading.Event = field(default_factory=threading.Event)
