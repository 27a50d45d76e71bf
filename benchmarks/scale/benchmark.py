"""What is measured of a cloud of a size: how it grows, what is asked of it, what each role takes meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.scale import kinds, measure, seed
from benchmarks.scale.deployment import MIXED, SMALL, SUPER, SUPER_CONDUCTORS, Deployment, kind_of
from benchmarks.scale.profiling import Profiler

IDLE_SECONDS = 5.0


@dataclass
class Plan:
    cells: int
    hosts: int
    servers: int
    movers: int
    seconds: float
    reads: int
    host_subset_size: int
    computes: int = 0
    warm: int = 0
    live: int = 0
    near_live: int = 0
    link_bandwidth: float = 0.0
    link_latency: float = 0.0
    guest_data: float = 0.0
    guest_disk_rate: float = 0.0
    guest_memory_rate: float = 0.0
    clock_speed: float = 0.0
    callers: int = 4

    @property
    def records_only(self) -> bool:
        """Whether there are hosts without a compute service."""
        return 0 < self.computes < self.hosts

    @property
    def shares(self) -> dict[str, int]:
        return {"warm": self.warm, "live": self.live, "near-live": self.near_live}

    @property
    def habits(self) -> dict[str, float]:
        """Extra specs of the flavor of guests that move in every way."""
        rates = {"disk_rate": self.guest_disk_rate, "memory_rate": self.guest_memory_rate}
        return {"data": self.guest_data, **rates}

    def simulated(self, directory: Path) -> dict[str, object]:
        clock = {"clock": directory / "clock", "clock_speed": self.clock_speed} if self.clock_speed else {}
        return {"link_bandwidth": self.link_bandwidth, "link_latency": self.link_latency, **clock}


@dataclass
class Benchmark:
    deployment: Deployment
    plan: Plan
    rabbit: str
    console: Console
    profiler: Profiler
    movers: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    # role -> share of a CPU
    idle: dict[str, float] = field(default_factory=dict)

    def client(self) -> measure.Client:
        return measure.Client(self.deployment.api_address, str(self.deployment.member.session.get_token()))

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        with self.console.status(what):
            try:
                yield
            except BaseException:
                self.console.print(f"[red]{time.monotonic() - began:6.1f} s  {what}: not ended")
                raise
        self.console.print(f"[dim]{time.monotonic() - began:6.1f} s  {what}")

    def grow(self, cells: int) -> None:
        """To so many cells, each with its share of the servers."""
        new = cells - len(self.deployment.cells)
        for _ in range(new):
            cell = self.deployment.add_cell()
            computes = set(self.deployment.computes[cell.name])
            with self.telling(f"records of {cell.name}"):
                seed.make_servers(
                    self.deployment.api_database,
                    self.deployment.placement,
                    cell,
                    self.deployment.owner,
                    seed.Owner("another-user", "another-project"),
                    self.plan.servers // self.plan.cells,
                    self.deployment.image_id,
                    SMALL,
                    [host for host in cell.nodes if not self.plan.records_only or host not in computes],
                )
        if new:
            with self.deployment.placement.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("ANALYZE")
            for database in (self.deployment.api_database, *(cell.database for cell in self.deployment.cells.values())):
                with database.read() as connection:
                    connection.exec_driver_sql("ANALYZE")
            with self.telling(f"conductors and hosts of {new} cells start"):
                self.deployment.start_cells()
            # It may have looked at hosts before their servers were written, and would take them for free for a while.
            with self.telling("the scheduler starts again"):
                self.deployment.restart_scheduler()

    @contextmanager
    def counting(self, found: dict[str, Any], name: str, number: Callable[[], int]) -> Iterator[None]:
        """Leaves in ``found`` what each process took of the CPU for one of the operations, in milliseconds.

        What it takes when nothing is asked for is taken off.
        """
        before, began = self.deployment.cpu(), time.monotonic()
        yield
        after, took, times = self.deployment.cpu(), time.monotonic() - began, max(1, number())
        spent = {
            role: seconds - before.get(role, 0.0) - self.idle_share(role) * took for role, seconds in after.items()
        }
        found[f"cpu {name}"] = {role: round(max(0.0, 1000 * each / times), 1) for role, each in spent.items()}

    def idle_share(self, role: str) -> float:
        """Each further super conductor takes as much as the first, which was alone when it was measured."""
        number = sum(kind_of(name) == SUPER for name in self.deployment.processes) if role == SUPER else 1
        return self.idle.get(role, 0.0) * number

    def measure_idle(self) -> dict[str, float]:
        """What each role takes when nothing is asked for: percent of a CPU."""
        size = f"{len(self.deployment.cells)} cells"
        with self.telling(f"{size}: nothing is asked for"):
            before, began = self.deployment.cpu(), time.monotonic()
            time.sleep(IDLE_SECONDS)
            after, took = self.deployment.cpu(), time.monotonic() - began
        self.idle = {role: (seconds - before.get(role, 0.0)) / took for role, seconds in after.items()}
        return {role: round(100 * share, 1) for role, share in self.idle.items()}

    def reads_and_decisions(self, found: dict[str, Any]) -> None:
        plan, deployment = self.plan, self.deployment
        size = f"{len(deployment.cells)} cells"
        client = self.client()
        with self.telling(f"{size}: the scheduler looks up all hosts"):
            measure.decide_once(deployment, self.rabbit)
        found["cpu idle"] = self.measure_idle()
        first = client.call("GET", "/servers?limit=1000")["servers"]
        for name, paths, times in (
            ("list", lambda _n: "/servers/detail?limit=1000", plan.reads),
            ("list by name", lambda _n: "/servers/detail?limit=1000&sort_key=display_name", max(3, plan.reads // 3)),
            ("show", lambda n: f"/servers/{first[n * 7 % len(first)]['id']}", plan.reads * 10),
        ):
            with (
                self.telling(f"{size}: {name}"),
                self.profiler.during(deployment, f"{size} {name}", "api"),
                self.counting(found, name, lambda times=times: times + measure.WARM_UP),  # type: ignore[misc]
            ):
                found[name] = measure.get(client, paths, times)
        with (
            self.telling(f"{size}: decisions of the scheduler"),
            self.profiler.during(deployment, f"{size} decisions", "scheduler", "placement"),
            self.counting(found, "decision", lambda: len(found["decision"].seconds)),
        ):
            found["decisions"], found["decision"] = measure.decisions(
                deployment, self.rabbit, plan.seconds / 2, plan.callers
            )
        found["memory"], found["connections"] = deployment.memory(), deployment.connections()

    def moves(self, found: dict[str, Any]) -> None:
        plan, deployment = self.plan, self.deployment
        size = f"{len(deployment.cells)} cells"
        if not self.movers:
            with self.telling(f"{plan.movers} servers are built"):
                self.movers = measure.build(deployment, self.client, plan.movers)
        for conductors in SUPER_CONDUCTORS:
            for number in range(1, conductors + 1):
                if f"super{number}" not in deployment.processes:
                    deployment.start_super_conductor(number)
            with self.telling(f"{size}: every server moves once, for caches and connections"):
                measure.moves(deployment, self.client, self.movers, 0.0)
            if conductors == 1:
                self.measure_idle()
            what = f"{size}: cross-cell resizes, {conductors} super conductors"
            busy = ("api", "super1", "scheduler", "placement", "hosts-cell1", "conductor-cell1", "devcloud")
            name = f"moves {conductors}"
            with (
                self.telling(what),
                self.profiler.during(deployment, f"{size} {name}", *busy),
                self.counting(found, name, lambda name=name: found[name].cycles),  # type: ignore[misc]
            ):
                found[name] = measure.moves(deployment, self.client, self.movers, plan.seconds)
        if any(plan.shares.values()):
            self.moves_of_every_kind(size, found)
        found["memory moves"], found["connections moves"] = deployment.memory(), deployment.connections()
        for number in range(2, max(SUPER_CONDUCTORS) + 1):
            deployment.stop_process(f"super{number}")

    def moves_of_every_kind(self, size: str, found: dict[str, Any]) -> None:
        plan, deployment = self.plan, self.deployment
        if not self.mixed:
            with self.telling(f"{plan.movers} servers are built that move in every way"):
                self.mixed = measure.build(deployment, self.client, plan.movers, "mixed", MIXED)
        access = deployment.connect("causeway-admin").session

        def client() -> measure.Client:
            return measure.Client(deployment.api_address, str(access.get_token()))

        with self.telling(f"{size}: moves of every kind"):
            for kind, figures in kinds.mixed(deployment, client, self.mixed, plan.seconds, plan.shares).items():
                found[f"kind {kind}"] = figures
