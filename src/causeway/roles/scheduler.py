"""A scheduler: its service, and its RPC methods."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from functools import partial

from causeway import errors
from causeway.conductor.upkeep.periodic import Periodic
from causeway.context import RequestContext
from causeway.model.host import CELL0_UUID
from causeway.notify.notifier import Notifier
from causeway.roles.surroundings import Surroundings
from causeway.rpc import scheduler as scheduler_rpc
from causeway.rpc.server import RpcServer
from causeway.scheduler.cells_source import CellsSource
from causeway.scheduler.explain import Explanation
from causeway.scheduler.many import Packing, PackRequest
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult
from causeway.scheduler.service import Scheduler
from causeway.store.api import wanted_operations
from causeway.store.cell import hosts
from causeway.store.cells import Cells

LOG = logging.getLogger(__name__)


SCHEDULER_VERSION = 1


class SchedulerService:
    """A scheduler that listens on the cloud's queue, and shows that it is alive."""

    def __init__(self, around: Surroundings, cells: Cells, host: str) -> None:
        self._host = host
        self._cells = cells
        self._stopping = threading.Event()
        awaited = partial(wanted_operations.awaited, cells.api)
        self._scheduler = Scheduler(around.conf, around.placement, CellsSource(cells), awaited)
        transport = around.transports.get(around.conf.transport_url)
        endpoint = SchedulerEndpoint(self._scheduler, around.notifier(f"nova-scheduler:{host}"))
        self.server = RpcServer(transport, scheduler_rpc.TOPIC, host, [endpoint], threads=16)
        self._life = Periodic("scheduler-life-sign", around.conf.report_interval, self._show_life, self._stopping)

    def start(self) -> None:
        self.server.start()
        try:
            self._show_life()
        except errors.CausewayError as failure:
            # There is no cell0 yet, or its database failed. Until then this scheduler counts as down, but it works all the same.
            LOG.warning("This scheduler can't update its service record: %s %s", failure.message, failure.details)
        self._life.start()

    def _show_life(self) -> None:
        """Updates this scheduler's service record, which is in cell0, as in Nova."""
        database = self._cells.database(CELL0_UUID)
        hosts.report_service(database, self._host, "nova-scheduler", scheduler_rpc.TOPIC, SCHEDULER_VERSION)

    def invalidate(self) -> None:
        """Discards what it knows of hosts."""
        self._scheduler.invalidate()

    def stop(self) -> None:
        """Takes no new calls, and finishes those that have begun."""
        self._stopping.set()
        self._life.stop()
        self.server.stop()
        self._scheduler.close()


class SchedulerEndpoint:
    """The RPC methods of the scheduler."""

    def __init__(self, service: Scheduler, notifier: Notifier) -> None:
        self._service = service
        self._notifier = notifier

    def select_destinations(
        self,
        context: RequestContext,
        *,
        spec: RequestSpec,
        instance_uuids: list[str],
        alternates: bool,
        move: MoveClaim | None,
    ) -> list[SchedulingResult]:
        self._notifier.select_destinations(context, spec, "start")
        found = self._service.select_destinations(context, spec, instance_uuids, alternates=alternates, move=move)
        self._notifier.select_destinations(context, spec, "end")
        if move is None:
            # Only moves record the explanation.
            return [replace(one, explanation=Explanation()) for one in found]
        return found

    def explain(self, context: RequestContext, *, spec: RequestSpec) -> Explanation:
        return self._service.explain(context, spec)

    def pack(self, context: RequestContext, *, request: PackRequest) -> Packing:
        return self._service.pack(context, request)
