"""What the metadata service works with: one object per process."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from causeway.clients.network import NetworkClient
from causeway.clients.vendordata import Vendordata
from causeway.store.cells import Cells
from causeway.store.database import Database


@dataclass
class MetadataServices:
    conf: cfg.ConfigOpts
    api: Database
    cells: Cells
    network: NetworkClient
    vendordata: Vendordata
