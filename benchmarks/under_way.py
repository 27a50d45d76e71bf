"""Many moves under way in one conductor: threads, memory, and what it does to the databases while disks travel.

``python -m benchmarks.under_way [--moves 1000]``: an embedded cloud of two cells. All servers are resized to the other cell while
their guests run. No host ends its first round of copying before all have begun one.
"""

from __future__ import annotations

import json
import logging
import re
import resource
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import openstack
import sqlalchemy as sa
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sqlalchemy import event

from causeway.embedded.cloud import EmbeddedCloud
from causeway.store.api import operation_counts

# Of each cell: a host listens with 64 threads.
MOVES_OF_A_HOST = 50
PATIENCE = 3600.0


@click.command()
@click.option("--moves", default=1000, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="For which is counted while all disks travel.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(moves: int, seconds: float, file: Path | None) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="causeway-under-way-", ignore_cleanup_errors=True) as directory:
        cloud = EmbeddedCloud(
            Path(directory),
            port=0,
            hosts_per_cell=-(-moves // MOVES_OF_A_HOST),
            overrides={
                "simulated": {"vcpus": 512, "memory_mb": 2**20},
                "quota": dict.fromkeys(("instances", "cores", "ram"), -1),
            },
        )
        cloud.start()
        try:
            found = measure(cloud, moves, seconds)
        finally:
            cloud.stop()
    show(found)
    if file is not None:
        file.write_text(json.dumps(found, indent=1))


def measure(cloud: EmbeddedCloud, moves: int, seconds: float) -> dict[str, Any]:
    account = cloud.accounts["demo"]
    user = openstack.connect(
        auth={
            "auth_url": cloud.accounts.auth_url,
            "username": account.username,
            "password": account.password,
            "project_name": account.project_name,
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name="RegionOne",
        compute_api_version="2",
        compute_default_microversion="2.96",
        load_yaml_config=False,
        load_envvars=False,
    )
    image = user.image.find_image("demo").id

    def build(number: int) -> str:
        made = user.compute.create_server(name=f"s{number}", flavor_id="gen1.small", image_id=image, networks="none")
        return str(made.id)

    with ThreadPoolExecutor(8) as pool:
        servers = list(pool.map(build, range(moves)))
    _until("built", lambda: _statuses(user)["ACTIVE"], moves)
    found: dict[str, Any] = {"moves": moves, "before": _process()}
    gate = threading.Event()
    for compute in cloud.computes.values():
        _hold(compute.host.driver, gate)
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda server: user.compute.resize_server(server, "gen2.small"), servers))
    _until("being copied", lambda: _copying(cloud), moves)
    found["seconds until all travel"] = round(time.monotonic() - began, 1)
    found["while all travel"] = _process() | _statements(cloud, seconds)
    gate.set()
    _until("there", lambda: _statuses(user)["VERIFY_RESIZE"], moves)
    found["seconds until all are there"] = round(time.monotonic() - began, 1)
    return found


def _hold(driver: Any, gate: threading.Event) -> None:
    """A host's rounds of copying wait for the gate."""
    begin_round = driver.begin_round

    def begin(*args: Any, **more: Any) -> Any:
        gate.wait(PATIENCE)
        return begin_round(*args, **more)

    driver.begin_round = begin


def _until(what: str, count: Callable[[], int], wanted: int) -> None:
    """Raises ClickException if that takes too long."""
    end = time.monotonic() + PATIENCE
    with Progress() as progress:
        task = progress.add_task(what, total=wanted)
        while (seen := count()) < wanted:
            progress.update(task, completed=seen)
            if time.monotonic() > end:
                raise click.ClickException(f"{seen} of {wanted} are {what} after {PATIENCE:.0f} s")
            time.sleep(2.0)


def _statuses(user: Any) -> Counter[str]:
    return Counter(server.status for server in user.compute.servers(details=True))


def _copying(cloud: EmbeddedCloud) -> int:
    return sum(each.count for each in operation_counts.under_way(cloud.api_database) if each.step == "CopyWhileRunning")


def _process() -> dict[str, Any]:
    threads = Counter(_kind(thread.name) for thread in threading.enumerate())
    return {"threads": dict(threads.most_common()), "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def _kind(name: str) -> str:
    if name.startswith("rpc-compute-"):
        return "hosts"
    return re.sub(r"[-_]?\d+$", "", name)


def _statements(cloud: EmbeddedCloud, seconds: float) -> dict[str, float]:
    """By database and second."""
    counts: Counter[str] = Counter()
    of_api = cloud.api_database.engine.url.database

    def executed(connection: sa.Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        where = "API database" if connection.engine.url.database == of_api else "others"
        kind = "reads" if statement.lstrip().upper().startswith("SELECT") else "writes"
        counts[f"{where}: {kind}"] += 1

    event.listen(sa.engine.Engine, "before_cursor_execute", executed)
    cpu = time.process_time()
    time.sleep(seconds)
    took = time.process_time() - cpu
    event.remove(sa.engine.Engine, "before_cursor_execute", executed)
    return {f"{name} a second": round(count / seconds, 1) for name, count in sorted(counts.items())} | {
        "CPU, of a core": round(took / seconds, 2)
    }


def show(found: dict[str, Any]) -> None:
    table = Table(title=f"{found['moves']} moves under way in one conductor")
    for name in ("what", "before", "while all travel"):
        table.add_column(name)
    before, travelling = found["before"], found["while all travel"]
    for kind in sorted(before["threads"].keys() | travelling["threads"].keys()):
        table.add_row(f"threads: {kind}", str(before["threads"].get(kind, 0)), str(travelling["threads"].get(kind, 0)))
    for name in travelling:
        if name != "threads":
            table.add_row(name, str(before.get(name, "")), str(travelling[name]))
    Console().print(table)
    for name in ("seconds until all travel", "seconds until all are there"):
        print(f"{name}: {found[name]}")


if __name__ == "__main__":
    main()
