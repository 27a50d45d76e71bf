"""The conductor service: super conductor of the cloud, and conductor of its cells."""

from __future__ import annotations

import logging
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from causeway import errors
from causeway.conductor.cells.cell_queues import CellQueues
from causeway.conductor.endpoints.audit import AuditEndpoint
from causeway.conductor.endpoints.candidates import CandidatesEndpoint
from causeway.conductor.endpoints.devices import DevicesEndpoint
from causeway.conductor.endpoints.drains import DrainsEndpoint
from causeway.conductor.endpoints.external_events import EventsEndpoint
from causeway.conductor.endpoints.guest_states import GuestStatesEndpoint
from causeway.conductor.endpoints.image_caching import ImageCachingEndpoint
from causeway.conductor.endpoints.inside import InsideEndpoint
from causeway.conductor.endpoints.live_orders import LiveEndpoint
from causeway.conductor.endpoints.operations import Keeper, OperationCallers, OperationsEndpoint
from causeway.conductor.endpoints.power import PowerEndpoint
from causeway.conductor.upkeep import auto_confirm, auto_offload, cleaning, overdue_rescues, reclaim, recovery
from causeway.conductor.upkeep.evacuated import EvacuatedEndpoint
from causeway.conductor.upkeep.periodic import Periodic
from causeway.conductor.upkeep.recovery import Recovery, WorkEndpoint
from causeway.drains.runner import Drains
from causeway.operations.engine import engine_of
from causeway.rpc.conductor import TOPIC, VERSION, ConductorClient
from causeway.rpc.endpoint import expose
from causeway.rpc.server import RpcServer
from causeway.rpc.transport import Transport
from causeway.running.services import ConductorServices
from causeway.store import mapping_facts
from causeway.store.api import console_tokens

LOG = logging.getLogger(__name__)


class ConductorService:
    """Listens on the cloud's queue as super conductor, and on the queues of cells as their conductor.

    ``cells``: names or uuids; None for all cells, including those that are made later.
    """

    def __init__(self, services: ConductorServices, transport: Transport, cells: Collection[str] | None = None) -> None:
        self._services = services
        conductor = ConductorClient(transport)
        engine = engine_of(services)
        self._conductor = conductor
        self._keeper = Keeper(engine, OperationCallers(services, conductor))
        self._recovery = Recovery(services, conductor, self._at_work)
        self._periodic = [
            Periodic(name, module.interval(services), partial(look, services, conductor), services.stopping)
            for name, module, look in (
                ("auto-confirm", auto_confirm, auto_confirm.AutoConfirm()),
                ("auto-offload", auto_offload, auto_offload.offload_shelved),
                ("reclaim", reclaim, reclaim.reclaim),
                ("overdue-rescues", overdue_rescues, overdue_rescues.unrescue),
            )
        ]
        every = services.conf.conductor.recovery_interval
        self._periodic += [
            Periodic("life-sign", services.conf.report_interval, self._recovery.show_life, services.stopping),
            Periodic("recovery", every, self._recovery.look, services.stopping),
            Periodic("cleanups", every, partial(cleaning.look, services), services.stopping),
            Periodic("console-tokens", every, partial(console_tokens.purge, services.api), services.stopping),
            Periodic("mappings", every, partial(mapping_facts.note_deleted, services.cells), services.stopping),
        ]
        self._drains = Drains(services, conductor)
        drains = Periodic("drains", services.conf.drains.interval, self._drains.look, services.stopping)
        self._periodic.append(drains)
        devices = DevicesEndpoint(services, engine)
        self._servers = [
            RpcServer(
                transport,
                TOPIC,
                services.host,
                [
                    expose(endpoint, VERSION)
                    for endpoint in (
                        AuditEndpoint(services),
                        CandidatesEndpoint(services),
                        devices,
                        DrainsEndpoint(services, drains.wake),
                        EventsEndpoint(services),
                        PowerEndpoint(services),
                        GuestStatesEndpoint(services),
                        InsideEndpoint(services),
                        ImageCachingEndpoint(services),
                        EvacuatedEndpoint(services),
                        LiveEndpoint(services),
                        OperationsEndpoint(self._keeper),
                        WorkEndpoint(services.life, self._at_work),
                    )
                ],
            )
        ]
        self._cells = CellQueues(services, cells, conductor)

    def start(self) -> None:
        for server in self._servers:
            server.start()
        self._cells.start()

    def recover(self, *, alone: bool = False) -> None:
        """Resumes the moves that an earlier process did not finish, and from now on every abandoned move.

        Call this when the hosts can be reached. ``alone``: no other conductor works on servers, so every task is abandoned.
        """
        if alone:
            recovery.settle(self._services)
        self._keeper.take_over()
        self._keeper.start()
        try:
            self._recovery.show_life()
        except errors.DatabaseFailed as failure:
            # The database of cell0 failed. Until it works again this conductor counts as down, but it works all the same.
            LOG.warning("This conductor can't update its service record: %s %s", failure.message, failure.details)
        for periodic in self._periodic:
            periodic.start()

    def _at_work(self) -> set[str]:
        """Returns the servers of the requests that are running."""
        return set().union(*(server.resources() for server in self._servers))

    def release_operations(self) -> None:
        """Waits for the running steps of all moves, and releases the moves. Call this while the hosts can still be reached."""
        self._services.stopping.set()
        for periodic in self._periodic:
            periodic.stop()
        self._drains.release()
        self._keeper.stop()

    def stop(self) -> None:
        """Takes no new work, waits for the running steps, and hands over their moves."""
        self.release_operations()
        # All at the same time, because each of oslo.messaging's RabbitMQ listeners may take five seconds to notice.
        with ThreadPoolExecutor(1 + len(self._servers), thread_name_prefix="conductor-stop") as pool:
            cells = pool.submit(self._cells.stop)
            list(pool.map(RpcServer.stop, self._servers))
            cells.result()
        self._services.life.end()
