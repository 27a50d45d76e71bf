"""Conductors: of the cloud (super), of cells, or both."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from oslo_config import cfg

from causeway import clock
from causeway.conductor.cell_service import CellConductorService
from causeway.conductor.service import ConductorService
from causeway.notify import saved_states
from causeway.notify.notifier import Notifier
from causeway.roles.notifying import make_notifier
from causeway.roles.surroundings import Surroundings
from causeway.rpc.scheduler import SchedulerClient
from causeway.rpc.transport import Transports
from causeway.running.services import ConductorServices
from causeway.sagas.lives import Life
from causeway.store.cells import Cells
from causeway.store.database import Database


def make_conductor(
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
        keys=around.keys,
        notifier=make_notifier(around, f"nova-conductor:{host}", cells),
        life=Life(host, Path(around.conf.state_path) / "conductors"),
        clock=clock.of(around.conf.simulated.clock),
    )
    return ConductorService(services, transport, of_cells)


def make_cell_conductor(
    conf: cfg.ConfigOpts, queues: Transports, host: str, database: Database, cell_transport: str
) -> CellConductorService:
    """The conductor of one cell and nothing else; ``database`` and ``cell_transport`` are the cell's."""
    notifier = Notifier(None, f"nova-conductor:{host}", conf)
    if notifier.notifies_states:
        database.observer = saved_states.SavedStates(notifier)
    return CellConductorService(host, conf, database, queues.get(cell_transport), notifier)
