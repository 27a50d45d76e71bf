"""How long a plan takes, and what it asks of the services, in a cloud of many cells: hosts and servers are records only.

All that plans is real: conductor, scheduler, Placement, a database for each cell (SQLite). The first half of the cells is
full, and emptied into the other one.
"""

from __future__ import annotations

import resource
import tempfile
import time
import uuid as uuids
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks.counting import look
from benchmarks.scale import seed
from causeway.context import admin_context
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.drains import DrainRequest, Limits, Scope, Targets
from causeway.model.flavor import Flavor
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import aggregates, flavors

# A host has 64 CPUs (four times over) and 256 GiB of memory and takes its share of the servers, whatever their sizes.
_FLAVORS = tuple(
    Flavor(f"size{gib}", f"size{gib}", vcpus=max(1, gib // 4), memory_mb=gib * 1024, root_gb=10 * gib)
    for gib in (1, 2, 4, 8)
)
_OPTIONS: dict[str, dict[str, Any]] = {
    # A thousand cells' hosts do not report here.
    "DEFAULT": {"service_down_time": 36_000, "rpc_response_timeout": 600},
    "api_database": {"sqlite_synchronous": False},
    "drains": {"interval": 0.0},
}


@dataclass
class Planned:
    """``seconds`` and ``cpu`` from the API's question until it has the answer. ``calls``: by the service that was asked."""

    cells: int
    hosts: int
    servers: int
    seconds: float
    cpu: float
    movable: int
    summary: str
    bound: str | None
    statements: int
    calls: dict[str, int] = field(default_factory=dict)
    memory_mib: float = 0.0


def measure(cells: int, hosts: int, servers: int, say: Callable[[str], None]) -> Planned:
    with tempfile.TemporaryDirectory(prefix="bench-drain-") as directory:
        cloud = EmbeddedCloud(Path(directory), port=0, cells=cells, hosts_per_cell=0, overrides=_OPTIONS)
        say(f"{cells} cells are made")
        cloud.start()
        try:
            say(f"{hosts} hosts and {servers} servers are written down")
            _fill(cloud, hosts, servers)
            say("the plan is made")
            return _plan(cloud, hosts, servers)
        finally:
            cloud.stop()


def _fill(cloud: EmbeddedCloud, hosts: int, servers: int) -> None:
    api = cloud.api_database
    for flavor in _FLAVORS:
        flavors.create(api, flavor)
    aggregate_id = aggregates.create(api, "everywhere", {}).id
    # The first request that needs them makes Placement write its classes and traits.
    cloud.around.placement.list_providers()
    placement = sa.create_engine(cloud.state.database("placement"))
    known = cloud.cells.mappings(cell0=False)
    full = known[: len(known) // 2]
    owner = seed.Owner(str(uuids.uuid4()), str(uuids.uuid4()))
    for number, cell in enumerate(known):
        names = [f"{cell.name}-host{turn}" for turn in range(_part(hosts, len(known), number))]
        made = seed.Cell(cell.name, cell.uuid, cloud.cells.database(cell.uuid), {n: str(uuids.uuid4()) for n in names})
        seed.make_hosts(api, placement, made, cloud.state.path, aggregate_id)
        if cell in full:
            whole = _part(servers, len(full), number)
            for turn, flavor in enumerate(_FLAVORS):
                count = _part(whole, len(_FLAVORS), turn)
                seed.make_servers(api, placement, made, owner, owner, count, str(uuids.uuid4()), flavor)
    placement.dispose()


def _part(whole: int, parts: int, number: int) -> int:
    return whole * (number + 1) // parts - whole * number // parts


def _plan(cloud: EmbeddedCloud, hosts: int, servers: int) -> Planned:
    names = [cell.name for cell in cloud.cells.mappings(cell0=False)]
    half = len(names) // 2
    limits = Limits(total=400, per_source_host=2, per_target_host=2, per_cell_pair=100)
    wanted = DrainRequest(
        name="half", scope=Scope(cells=names[:half]), targets=Targets(cells=names[half:]), limits=limits
    )
    conductor = ConductorClient(cloud.around.transports.get(cloud.conf.transport_url))
    before, began, cpu = look(cloud, Counter()), time.monotonic(), time.process_time()
    plan = conductor.plan_drain(admin_context(), request=wanted)
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    costs = look(cloud, Counter()) - before
    return Planned(
        cells=len(names),
        hosts=hosts,
        servers=servers,
        seconds=seconds,
        cpu=cpu,
        movable=plan.movable,
        summary=plan.summary,
        bound=plan.bound,
        statements=costs.total("sql"),
        calls=dict(Counter({"placement": costs.total("placement"), "rpc": costs.total("rpc")}) + costs.http),
        memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
