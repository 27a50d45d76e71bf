"""The proxy of consoles."""

from __future__ import annotations

from oslo_config import cfg

from causeway.console_proxy.server import ConsoleProxy
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.transport import Transports
from causeway.store.cells import Cells


def make_console_proxy(conf: cfg.ConfigOpts, queues: Transports, cells: Cells, address: str, port: int) -> ConsoleProxy:
    """A console proxy that is not started yet. Raises OSError if it can't listen there."""
    conductor = ConductorClient(queues.get(conf.transport_url))
    return ConsoleProxy(conf, cells, conductor, address=address, port=port)
