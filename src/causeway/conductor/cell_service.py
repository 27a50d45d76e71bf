"""The conductor service of one cell: records the reports of its computes. It reaches only the cell's queue and database.

It sends reports for the API database to a super conductor over the cell's queue (`causeway.rpc.super_conductor`). While there are
no super conductors, hosts still report, and transfers of disks continue, but their progress is not shown.
"""

from __future__ import annotations

import threading

from oslo_config import cfg

from causeway.conductor.cells.cell import CellEndpoint
from causeway.conductor.cells.cell_queues import THREADS
from causeway.conductor.upkeep.periodic import Periodic
from causeway.conductor.upkeep.recovery import BINARY, SERVICE_VERSION
from causeway.notify.notifier import Notifier
from causeway.rpc.cell_conductor import TOPIC, VERSION
from causeway.rpc.endpoint import expose
from causeway.rpc.server import RpcServer
from causeway.rpc.super_conductor import SuperConductorClient
from causeway.rpc.transport import Transport
from causeway.store.cell import hosts
from causeway.store.database import Database


class CellConductorService:
    """Listens on the cell's queue. Any number of these services share the reports of a cell.

    ``notifier``: of this service, which closes it.
    """

    def __init__(
        self, host: str, conf: cfg.ConfigOpts, database: Database, transport: Transport, notifier: Notifier
    ) -> None:
        self._host = host
        self._database = database
        self._notifier = notifier
        self._stopping = threading.Event()
        cloud = SuperConductorClient(transport)
        endpoint = CellEndpoint(conf, lambda: database, cloud, remind=conf.service_down_time)
        self._server = RpcServer(transport, TOPIC, host, [expose(endpoint, VERSION)], threads=THREADS)
        self._life = Periodic("life-sign", conf.report_interval, self.show_life, self._stopping)

    def start(self) -> None:
        """Raises DatabaseFailed."""
        self.show_life()
        self._server.start()
        self._life.start()

    def show_life(self) -> None:
        """Updates this conductor's service record, which is in the cell, as in Nova."""
        hosts.report_service(self._database, self._host, BINARY, TOPIC, SERVICE_VERSION)

    def stop(self) -> None:
        """Takes no new calls, and finishes those that have begun."""
        self._stopping.set()
        self._life.stop()
        self._server.stop()
        self._notifier.close()
