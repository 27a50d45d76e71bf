"""``python -m benchmarks.scale [--cells 10] [--hosts 100] [--servers 20000]``."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from tests.functional.processes.rabbit import rabbit
from tests.integration.database_servers import database_server

from benchmarks.scale import kinds, measure, report, seed
from benchmarks.scale.deployment import MIXED, SMALL, Deployment
from benchmarks.scale.profiling import Profiler

IDLE_SECONDS = 8.0


@dataclass
class Plan:
    cells: int
    hosts: int
    servers: int
    movers: int
    seconds: float
    reads: int
    host_subset_size: int
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
            yield
        self.console.print(f"[dim]{time.monotonic() - began:6.1f} s  {what}")

    def grow(self, cells: int) -> None:
        """To so many cells, each with its share of the servers."""
        new = cells - len(self.deployment.cells)
        for _ in range(new):
            cell = self.deployment.add_cell()
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
                )
        if new:
            with self.deployment.placement.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("ANALYZE")
            for database in (self.deployment.api_database, *(cell.database for cell in self.deployment.cells.values())):
                with database.read() as connection:
                    connection.exec_driver_sql("ANALYZE")
            with self.telling(f"conductors and hosts of {new} cells start"):
                self.deployment.start_cells()

    @contextmanager
    def counting(self, found: dict[str, Any], name: str, number: Callable[[], int]) -> Iterator[None]:
        """Leaves in ``found`` what each process took of the CPU for one of the operations, in milliseconds.

        What it takes when nothing is asked for is taken off.
        """
        before, began = self.deployment.cpu(), time.monotonic()
        yield
        after, took, times = self.deployment.cpu(), time.monotonic() - began, max(1, number())
        spent = {
            role: seconds - before.get(role, 0.0) - self.idle.get(role, 0.0) * took for role, seconds in after.items()
        }
        found[f"cpu {name}"] = {role: round(max(0.0, 1000 * each / times), 1) for role, each in spent.items()}

    def measure_idle(self) -> dict[str, float]:
        """What each role takes when nothing is asked for: percent of a CPU."""
        size = f"{len(self.deployment.cells)} cells"
        with self.telling(f"{size}: nothing is asked for"):
            before, began = self.deployment.cpu(), time.monotonic()
            time.sleep(IDLE_SECONDS)
            after, took = self.deployment.cpu(), time.monotonic() - began
        self.idle = {role: (seconds - before.get(role, 0.0)) / took for role, seconds in after.items()}
        return {role: round(100 * share, 1) for role, share in self.idle.items()}

    def reads_and_decisions(self) -> dict[str, Any]:
        plan, deployment = self.plan, self.deployment
        size = f"{len(deployment.cells)} cells"
        client, found = self.client(), dict[str, Any]()
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
        return found

    def moves(self) -> dict[str, Any]:
        plan, deployment, found = self.plan, self.deployment, dict[str, Any]()
        size = f"{len(deployment.cells)} cells"
        if not self.movers:
            with self.telling(f"{plan.movers} servers are built"):
                self.movers = measure.build(deployment, self.client, plan.movers)
        self.measure_idle()
        for conductors in (1, 2):
            if conductors == 2:
                deployment.start_super_conductor(2)
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
            found |= self.moves_of_every_kind(size)
        found["memory moves"], found["connections moves"] = deployment.memory(), deployment.connections()
        deployment.stop_process("super2")
        return found

    def moves_of_every_kind(self, size: str) -> dict[str, Any]:
        plan, deployment, found = self.plan, self.deployment, dict[str, Any]()
        if not self.mixed:
            with self.telling(f"{plan.movers} servers are built that move in every way"):
                self.mixed = measure.build(deployment, self.client, plan.movers, "mixed", MIXED)
        access = deployment.connect("causeway-admin").session

        def client() -> measure.Client:
            return measure.Client(deployment.api_address, str(access.get_token()))

        with self.telling(f"{size}: moves of every kind"):
            for kind, figures in kinds.mixed(deployment, client, self.mixed, plan.seconds, plan.shares).items():
                found[f"kind {kind}"] = figures
        return found


@click.command()
@click.option("--cells", default=10, show_default=True, type=click.IntRange(2))
@click.option("--hosts", default=100, show_default=True, type=click.IntRange(1), help="In each cell.")
@click.option("--servers", default=20_000, show_default=True, type=click.IntRange(20), help="In all cells together.")
@click.option(
    "--movers", default=16, show_default=True, type=click.IntRange(2), help="Servers that move at the same time."
)
@click.option(
    "--seconds", default=40.0, show_default=True, help="How long decisions (half of it) and moves are counted."
)
@click.option(
    "--reads",
    default=30,
    show_default=True,
    type=click.IntRange(3),
    help="Lists that are timed; ten times as many shows.",
)
@click.option(
    "--host-subset-size",
    default=32,
    show_default=True,
    type=click.IntRange(1),
    help="[filter_scheduler]: with more than 1, requests at the same time do not all want the same best host.",
)
@click.option(
    "--warm", default=0, show_default=True, help="Share of cold migrations of running servers to another cell."
)
@click.option("--live", default=0, show_default=True, help="Share of live migrations inside a cell.")
@click.option(
    "--near-live",
    default=0,
    show_default=True,
    help="Share of live migrations to another cell. Shares of what is moved of servers of their own; all 0: not measured.",
)
@click.option("--link-bandwidth", default=0.0, show_default=True, help="MiB/s in which a host sends; 0: no limit.")
@click.option("--link-latency", default=0.0, show_default=True, help="Seconds before anything comes.")
@click.option(
    "--guest-data", default=0.0, show_default=True, help="GiB on the disk of each server that moves in every way."
)
@click.option("--guest-disk-rate", default=0.0, show_default=True, help="MiB/s that each of them writes to it.")
@click.option(
    "--guest-memory-rate", default=0.0, show_default=True, help="MiB/s that each changes of its 256 MiB of memory."
)
@click.option(
    "--clock-speed",
    default=0.0,
    show_default=True,
    help="Seconds of transfers that pass in a real one; 0: transfers take the time that they take.",
)
@click.option("--only", type=click.Choice(["reads", "moves"]), help="Only lists, shows and decisions, or only moves.")
@click.option("--whole-only", is_flag=True, help="Not the small cloud that the large one is compared with.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), default=Path("bench-scale.json"))
@click.option("--profile", type=click.Path(file_okay=False, path_type=Path), help="Folder for profiles; needs py-spy.")
@click.option(
    "--state-dir", type=click.Path(file_okay=False, path_type=Path), help="Keeps configuration and logs there."
)
def main(
    json_file: Path, only: str | None, whole_only: bool, profile: Path | None, state_dir: Path | None, **sizes: Any
) -> None:
    """Measures a cloud of one cell (two for moves), then one of all cells; prints a table and writes JSON."""
    warnings.simplefilter("ignore")
    logging.getLogger("oslo_messaging").setLevel(logging.ERROR)
    console = Console()
    if not console.is_terminal:
        console.width = 150
    plan = Plan(**sizes)
    found: dict[int, dict[str, Any]] = {}
    with ExitStack() as stack:
        directory = state_dir or Path(tempfile.mkdtemp(prefix="bench-scale-"))
        directory.mkdir(parents=True, exist_ok=True)
        if state_dir is None:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
        names = ("cloud", *(f"cell{n}" for n in range(1, plan.cells + 1)))
        queue = stack.enter_context(rabbit(directory / "rabbit", hosts=names))
        new_database = stack.enter_context(database_server("postgresql"))
        options = {
            "filter_scheduler": {"host_subset_size": plan.host_subset_size},
            "simulated": plan.simulated(directory),
        }
        deployment = Deployment(
            directory, queue, new_database, cells=plan.cells, hosts=plan.hosts, options=options, habits=plan.habits
        )
        stack.callback(deployment.stop)
        bench = Benchmark(deployment, plan, queue, console, Profiler(profile))
        with bench.telling("API, super conductor, scheduler, Placement start"):
            deployment.start()
            deployment.start_services()
        for cells in (plan.cells,) if whole_only else (1, plan.cells):
            bench.grow(cells)
            found[cells] = {} if only == "moves" else bench.reads_and_decisions()
            if only != "reads":
                bench.grow(max(cells, 2))
                found[cells] |= bench.moves()
        with bench.telling("everything ends"):
            deployment.stop()
    answer = report.as_json(plan, found)
    report.show(answer, console)
    json_file.write_text(json.dumps(answer, indent=2) + "\n")
    console.print(f"Written to {json_file}.")


if __name__ == "__main__":
    main()
