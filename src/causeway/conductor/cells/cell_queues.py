"""Listens on the queues of cells, including cells that are made later.

Each queue has two topics. At ``cell_conductor`` this conductor takes the reports of computes, of its own cells only. At
``super_conductor`` it takes, from all cells, the late answers of computes, and the reports for the API database that conductors
of single cells pass on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from zlib import crc32

from causeway import errors
from causeway.conductor.cells.cell import CellEndpoint
from causeway.conductor.cells.cloud_records import CloudEndpoint, map_hosts
from causeway.conductor.cells.transfers import Transfers
from causeway.model.host import CellMapping
from causeway.rpc import cell_conductor, super_conductor
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.endpoint import expose
from causeway.rpc.late_answers import NAMESPACE, AwaitedAnswersEndpoint
from causeway.rpc.server import RpcServer
from causeway.running.services import ConductorServices

LOG = logging.getLogger(__name__)

THREADS = 16
# Seconds for which one look waits for the queues and databases of cells. It does not end the work for unreachable ones.
PATIENCE = 10.0


class CellQueues:
    """Servers for the queue of each cell.

    ``names``: names or uuids of the cells whose computes report here; None for all cells.
    """

    def __init__(self, services: ConductorServices, names: Collection[str] | None, conductor: ConductorClient) -> None:
        self._services = services
        self._conductor = conductor
        # One for all cells, because it limits the writes to one database.
        self._transfers = Transfers(services.api)
        self._names = None if names is None else frozenset(names)
        self._lock = threading.Lock()
        # (cell, its queue's URL) -> the servers that listen there, or are being started
        self._servers: dict[tuple[str, str], list[RpcServer]] = {}
        # cells whose hosts were not mapped yet since this conductor began to listen to them
        self._unmapped: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="conductor-cells", daemon=True)

    def start(self) -> None:
        """Starts to listen to all cells whose queues answer in time, to others as soon as they answer, and to new cells."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            servers = [server for each in self._servers.values() for server in each]
            self._servers.clear()
        _stop(servers)

    def look(self) -> None:
        """Begins to listen to cells that are new or have another queue, and stops listening to deleted ones."""
        wanted = {(cell.uuid, cell.transport_url): cell for cell in self._services.cells.mappings(cell0=False)}
        with self._lock:
            gone = [self._servers.pop(key) for key in self._servers.keys() - wanted.keys()]
            new = sorted(wanted.keys() - self._servers.keys())
        for servers in gone:
            threading.Thread(target=_stop, args=(servers,), name="conductor-cell-gone", daemon=True).start()
        # The URL has a password, which must not be logged.
        work = {f"{cell}/{crc32(url.encode()):x}": partial(self._listen, wanted[cell, url]) for cell, url in new}
        self._services.by_cell("Listening to the queue").each(work, PATIENCE)

    def _listen(self, cell: CellMapping) -> None:
        """Starts to listen to a cell. Does not return while the cell's queue is unreachable."""
        LOG.info("Listening to cell %s", cell.name)
        key, servers = (cell.uuid, cell.transport_url), self._servers_of(cell)
        with self._lock:
            self._servers[key] = servers
        try:
            for server in servers:
                server.start()
        except Exception:
            with self._lock:
                if self._servers.get(key) is servers:
                    del self._servers[key]
            _stop(servers)
            raise
        with self._lock:
            is_wanted = self._servers.get(key) is servers
        if not is_wanted:
            # Meanwhile the cell was deleted, or the conductor has begun to stop.
            _stop(servers)

    def _servers_of(self, cell: CellMapping) -> list[RpcServer]:
        services = self._services
        cloud = CloudEndpoint(services, cell.uuid, self._conductor, self._transfers)
        of_super = expose(cloud, super_conductor.VERSION)
        awaited = expose(AwaitedAnswersEndpoint(services.transports.awaited), namespace=NAMESPACE)
        endpoints: dict[str, list[object]] = {super_conductor.TOPIC: [of_super, awaited]}
        if self._names is None or self._names & {cell.uuid, cell.name}:
            database = partial(services.cells.database, cell.uuid)
            of_cell = CellEndpoint(services.conf, database, cloud, cell_uuid=cell.uuid)
            endpoints[cell_conductor.TOPIC] = [expose(of_cell, cell_conductor.VERSION)]
        with self._lock:
            self._unmapped.add(cell.uuid)
        queue = services.transports.get(cell.transport_url)
        return [RpcServer(queue, topic, services.host, served, threads=THREADS) for topic, served in endpoints.items()]

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                if pause:
                    self.look()
                self._map_hosts()
            except errors.CausewayError as failure:
                LOG.warning("The list of cells can't be read: %s %s", failure.message, failure.details)
            except Exception:
                # The boundary of the thread: if it ended, cells that are made later would have no conductor.
                LOG.exception("The list of cells can't be read")
            pause = self._services.cells.max_age

    def _map_hosts(self) -> None:
        """Maps the hosts that cells have recorded. Tries a cell that is down again later."""
        with self._lock:
            work = {cell_uuid: partial(self._map_hosts_of, cell_uuid) for cell_uuid in self._unmapped}
        self._services.by_cell("Looking for the hosts").each(work, PATIENCE)

    def _map_hosts_of(self, cell_uuid: str) -> None:
        """Raises DatabaseFailed."""
        try:
            map_hosts(self._services, cell_uuid)
        except errors.NotFound:
            LOG.info("Cell %s was deleted", cell_uuid)
        with self._lock:
            self._unmapped.discard(cell_uuid)


def _stop(servers: list[RpcServer]) -> None:
    if servers:
        # All at the same time, because each of oslo.messaging's RabbitMQ listeners may take five seconds to notice.
        with ThreadPoolExecutor(len(servers), thread_name_prefix="conductor-stop") as pool:
            list(pool.map(RpcServer.stop, servers))
