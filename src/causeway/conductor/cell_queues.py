"""Listens on the queues of cells: of those that are there, and of those that are made meanwhile.

On each there are two topics. On ``cell_conductor`` computes report: for cells whose conductor this one is. On
``super_conductor`` conductors of single cells hand up what the API database is to know: for all cells.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from causeway import errors
from causeway.conductor.cell import CellEndpoint
from causeway.conductor.cloud_records import CloudEndpoint, map_hosts
from causeway.conductor.services import ConductorServices
from causeway.model.host import CellMapping
from causeway.rpc import cell_conductor, super_conductor
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.server import RpcServer

LOG = logging.getLogger(__name__)

THREADS = 16


class CellQueues:
    """Servers for the queue of each cell. ``names``: of the cells whose computes report here, or their uuids; None: all cells."""

    def __init__(self, services: ConductorServices, names: Collection[str] | None, conductor: ConductorClient) -> None:
        self._services = services
        self._conductor = conductor
        self._names = None if names is None else frozenset(names)
        # (cell, its queue's URL) -> who listens there
        self._servers: dict[tuple[str, str], list[RpcServer]] = {}
        # cells that others are conductors of, and whose hosts were not looked for yet
        self._unmapped: set[str] = set()
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
        wanted = {(cell.uuid, cell.transport_url): cell for cell in self._services.cells.mappings(cell0=False)}
        self._end([key for key in self._servers if key not in wanted])
        for key in sorted(wanted.keys() - self._servers.keys()):
            LOG.info("Listening to cell %s", wanted[key].name)
            self._servers[key] = self._listen(wanted[key])

    def _listen(self, cell: CellMapping) -> list[RpcServer]:
        services, cloud = self._services, CloudEndpoint(self._services, cell.uuid, self._conductor)
        endpoints: dict[str, object] = {super_conductor.TOPIC: cloud}
        if self._names is None or self._names & {cell.uuid, cell.name}:
            database = partial(services.cells.database, cell.uuid)
            endpoints[cell_conductor.TOPIC] = CellEndpoint(services.conf, database, cloud, cell_uuid=cell.uuid)
        else:
            self._unmapped.add(cell.uuid)
        queue = services.transports.get(cell.transport_url)
        servers = [
            RpcServer(queue, topic, services.host, [endpoint], threads=THREADS) for topic, endpoint in endpoints.items()
        ]
        for server in servers:
            server.start()
        return servers

    def _end(self, keys: list[tuple[str, str]]) -> None:
        servers = [server for key in keys for server in self._servers.pop(key)]
        if not servers:
            return
        # At once: oslo.messaging's RabbitMQ listeners may take five seconds each until they look up.
        with ThreadPoolExecutor(len(servers), thread_name_prefix="conductor-stop") as pool:
            list(pool.map(RpcServer.stop, servers))

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                if pause:
                    self.look()
                self._map_hosts()
            except errors.CausewayError as failure:
                LOG.warning("Cells can't be looked for: %s %s", failure.message, failure.details)
            except Exception:
                # The boundary of the thread: without it cells that are made later would have no conductor.
                LOG.exception("Cells can't be looked for")
            pause = self._services.cells.max_age

    def _map_hosts(self) -> None:
        """Of cells that are down: later."""
        for cell_uuid in sorted(self._unmapped):
            try:
                map_hosts(self._services, cell_uuid)
            except errors.NotFound:
                LOG.info("Cell %s is gone", cell_uuid)
            except errors.CausewayError as failure:
                LOG.warning("Hosts of cell %s can't be looked for: %s", cell_uuid, failure.message)
                continue
            self._unmapped.discard(cell_uuid)
