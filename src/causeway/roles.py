"""Makes the roles of a cloud from a configuration, for the embedded cloud (one process) and for `causeway ROLE` (many)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from oslo_config import cfg

from causeway import clock, decoding, errors
from causeway.api.app import build_app
from causeway.api.long_polls import LongPolls
from causeway.api.services import ApiServices
from causeway.clients.identity import IdentityClient
from causeway.clients.image import ImageClient
from causeway.clients.limits import LimitsClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient
from causeway.clients.session import ServiceSessions
from causeway.clients.vendordata import Vendordata
from causeway.clients.volume import VolumeClient
from causeway.compute.service import ComputeService
from causeway.conductor.cell_service import CellConductorService
from causeway.conductor.service import ConductorService
from causeway.conductor.upkeep.periodic import Periodic
from causeway.conf.quota import UNIFIED
from causeway.context import RequestContext
from causeway.faults import hooks
from causeway.http.strict import WsgiApp
from causeway.metadata.app import MetadataServices
from causeway.metadata.app import build_app as build_metadata_app
from causeway.model.host import CELL0_UUID
from causeway.notify import saved_states
from causeway.notify.notifier import Notifier
from causeway.parts.services import ConductorServices
from causeway.policy import Enforcer
from causeway.rpc import scheduler as scheduler_rpc
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.scheduler import SchedulerClient
from causeway.rpc.server import RpcServer
from causeway.rpc.transport import Transports
from causeway.sagas.lives import Life
from causeway.scheduler.cells_source import CellsSource
from causeway.scheduler.explain import Explanation
from causeway.scheduler.many import Packing, PackRequest
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult
from causeway.scheduler.service import Scheduler
from causeway.store.api import wanted_operations
from causeway.store.cell import hosts
from causeway.store.cells import Cells
from causeway.store.connections import ConnectionBudget
from causeway.store.database import Database
from causeway.virt.driver import Driver

if TYPE_CHECKING:
    from causeway.console_proxy.server import ConsoleProxy

LOG = logging.getLogger(__name__)

SCHEDULER_VERSION = 1


@dataclass
class Surroundings:
    """What all roles of a process share: the configuration, the queues, and the clients of the services around."""

    conf: cfg.ConfigOpts
    transports: Transports
    sessions: ServiceSessions
    placement: PlacementClient
    images: ImageClient
    network: NetworkClient
    volumes: VolumeClient
    identity: IdentityClient

    def __post_init__(self) -> None:
        self._notifiers: list[Notifier] = []

    def notifier(self, publisher_id: str, cells: Cells | None = None) -> Notifier:
        """Makes a notifier; `close` closes it too.

        ``cells``: of a role that writes servers. Its changes of their states are notified, if that is configured.
        """
        devices_of = None if cells is None else partial(saved_states.devices_of, cells)
        made = Notifier(None, publisher_id, self.conf, block_devices_of=devices_of)
        self._notifiers.append(made)
        if cells is not None and made.notifies_states:
            cells.observe(saved_states.SavedStates(made))
        return made

    def close(self) -> None:
        for notifier in self._notifiers:
            notifier.close()
        hooks.uninstall(self.conf)
        self.transports.cleanup()
        self.sessions.close()


def transports(conf: cfg.ConfigOpts) -> Transports:
    """The queues of a process, ready to be used."""
    decoding.prepare_decoders()
    made = Transports(conf)
    hooks.install(conf, made)
    return made


def surroundings(
    conf: cfg.ConfigOpts, placement: PlacementClient, transport: requests.Session | None = None
) -> Surroundings:
    """The clients that a configuration names. ``transport``: see `ServiceSessions`."""
    sessions = ServiceSessions(conf, transport=transport)
    return Surroundings(
        conf=conf,
        transports=transports(conf),
        sessions=sessions,
        placement=placement,
        images=ImageClient(sessions),
        network=NetworkClient(sessions),
        volumes=VolumeClient(sessions),
        identity=IdentityClient(sessions),
    )


def surroundings_of_hosts(around: Surroundings, accounts: cfg.ConfigOpts, transport: requests.Session) -> Surroundings:
    """The same for hosts in the same process, which call services with accounts of their own."""
    sessions = ServiceSessions(around.conf, transport=transport, accounts=accounts)
    return replace(
        around,
        sessions=sessions,
        images=ImageClient(sessions),
        network=NetworkClient(sessions),
        volumes=VolumeClient(sessions),
        identity=IdentityClient(sessions),
    )


def cells_of(conf: cfg.ConfigOpts, api: Database) -> Cells:
    """The cells that an API database knows of."""
    options = conf.api_database
    budget = ConnectionBudget(options.cell_connections)
    return Cells(api, timeout=options.cell_timeout, max_age=options.cells_refresh_interval, budget=budget)


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


def conductor(
    around: Surroundings, api: Database, cells: Cells, host: str, *, of_cells: Collection[str] | None = None
) -> ConductorService:
    """A super conductor that is also the conductor of ``of_cells`` (names or uuids; empty: of no cell; None: of all cells)."""
    transport = around.transports.get(around.conf.transport_url)
    services = ConductorServices(
        host=host,
        conf=around.conf,
        api=api,
        cells=cells,
        transports=around.transports,
        scheduler=SchedulerClient(transport),
        placement=around.placement,
        images=around.images,
        network=around.network,
        volumes=around.volumes,
        notifier=around.notifier(f"nova-conductor:{host}", cells),
        life=Life(host, Path(around.conf.state_path) / "conductors"),
        clock=clock.of(around.conf.simulated.clock),
    )
    return ConductorService(services, transport, of_cells)


def cell_conductor(
    conf: cfg.ConfigOpts, queues: Transports, host: str, database: Database, cell_transport: str
) -> CellConductorService:
    """The conductor of one cell and nothing else; ``database`` and ``cell_transport`` are the cell's."""
    notifier = Notifier(None, f"nova-conductor:{host}", conf)
    if notifier.notifies_states:
        database.observer = saved_states.SavedStates(notifier)
    return CellConductorService(host, conf, database, queues.get(cell_transport), notifier)


def compute(around: Surroundings, name: str, driver: Driver, cell_transport: str, state_dir: Path) -> ComputeService:
    """The compute service of one host."""
    return ComputeService(
        name,
        around.conf,
        driver=hooks.watch_driver(driver, name),
        transport=around.transports.get(cell_transport),
        placement=around.placement,
        images=around.images,
        network=around.network,
        volumes=around.volumes,
        vendordata=Vendordata(around.sessions),
        state_dir=state_dir,
    )


def metadata_app(sessions: ServiceSessions, api: Database, cells: Cells) -> WsgiApp:
    """The metadata service as a WSGI application. Raises Misconfigured."""
    decoding.prepare_decoders()
    return build_metadata_app(
        MetadataServices(
            conf=sessions.conf,
            api=api,
            cells=cells,
            network=NetworkClient(sessions),
            vendordata=Vendordata(sessions),
        )
    )


def console_proxy(conf: cfg.ConfigOpts, queues: Transports, cells: Cells, address: str, port: int) -> ConsoleProxy:
    """A console proxy that is not started yet. Raises OSError if it can't listen there."""
    # Imported here, because websockify imports many modules that other roles don't need.
    from causeway.console_proxy.server import ConsoleProxy

    conductor = ConductorClient(queues.get(conf.transport_url))
    return ConsoleProxy(conf, cells, conductor, address=address, port=port)


def api_app(
    around: Surroundings, api: Database, cells: Cells, host: str, long_polls: LongPolls
) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """The Compute API as a WSGI application. ``long_polls``: the requests that wait on its server's threads."""
    return build_app(
        ApiServices(
            conf=around.conf,
            api=api,
            cells=cells,
            conductor=ConductorClient(around.transports.get(around.conf.transport_url)),
            placement=around.placement,
            images=around.images,
            network=around.network,
            volumes=around.volumes,
            enforcer=Enforcer(around.conf),
            identity=around.identity,
            limits=LimitsClient(around.conf) if around.conf.quota.driver == UNIFIED else None,
            notifier=around.notifier(f"nova-api:{host}", cells),
            long_polls=long_polls,
            clock=clock.of(around.conf.simulated.clock),
        )
    )
