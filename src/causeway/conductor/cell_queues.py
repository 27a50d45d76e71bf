"""Listens on the queues of cells, as their conductor: of those that are there, and of those that are made meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from causeway import errors
from causeway.conductor.cell import CellEndpoint
from causeway.conductor.services import ConductorServices
from causeway.rpc import cell_conductor
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.server import RpcServer

LOG = logging.getLogger(__name__)

THREADS = 16


class CellQueues:
    """A server for the queue of each cell. ``names``: of the cells, or their uuids; None: all cells."""

    def __init__(self, services: ConductorServices, names: Collection[str] | None, conductor: ConductorClient) -> None:
        self._services = services
        self._conductor = conductor
        self._names = None if names is None else frozenset(names)
        # (cell, its queue's URL) -> who listens there
        self._servers: dict[tuple[str, str], RpcServer] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="conductor-cells", daemon=True)

    def start(self) -> None:
        """Listens to all that are there when this returns, and looks for others from time to time."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._end(list(self._servers))

    def look(self) -> None:
        """Begins to listen to cells that are new or have another queue, and ends it for those that are gone."""
        wanted = {
            (cell.uuid, cell.transport_url)
            for cell in self._services.cells.mappings(cell0=False)
            if self._names is None or self._names & {cell.uuid, cell.name}
        }
        self._end([key for key in self._servers if key not in wanted])
        for cell_uuid, url in sorted(wanted - self._servers.keys()):
            LOG.info("Listening to cell %s", cell_uuid)
            queue = self._services.transports.get(url)
            endpoints = [CellEndpoint(self._services, cell_uuid, self._conductor)]
            server = RpcServer(queue, cell_conductor.TOPIC, self._services.host, endpoints, threads=THREADS)
            server.start()
            self._servers[cell_uuid, url] = server

    def _end(self, keys: list[tuple[str, str]]) -> None:
        if not keys:
            return
        # At once: oslo.messaging's RabbitMQ listeners may take five seconds each until they look up.
        with ThreadPoolExecutor(len(keys), thread_name_prefix="conductor-stop") as pool:
            list(pool.map(RpcServer.stop, [self._servers.pop(key) for key in keys]))

    def _run(self) -> None:
        while not self._stopping.wait(self._services.cells.max_age):
            try:
                self.look()
            except errors.CausewayError as failure:
                LOG.warning("Cells can't be looked for: %s %s", failure.message, failure.details)
