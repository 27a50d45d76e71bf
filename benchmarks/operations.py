"""What is measured: operations, each several times."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from benchmarks.cloud import SAME_CELL, MeasuredCloud, Timing
from benchmarks.counting import Counts
from benchmarks.instructions import Spent
from benchmarks.lifecycle import Lifecycle
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.model.states import PowerState, VmState
from causeway.store.api import mappings
from causeway.store.cell import hosts, instances
from causeway.store.database import utcnow

RESIZE = {"resize": {"flavorRef": "gen2.small"}}
RESIZE_IN_CELL = {"resize": {"flavorRef": SAME_CELL.flavorid}}
CONFIRM = {"confirmResize": None}
REVERT = {"revertResize": None}

TITLES = {
    "resize": "cross-cell resize",
    "confirm": "confirm",
    "revert": "revert",
    "same-cell": "resize inside a cell",
    "same-cell confirm": "its confirm",
    "create": "create, from an image, one port",
    "attach": "attach a volume",
    "detach": "detach a volume",
    "attach port": "attach a port",
    "detach port": "detach a port",
    "shelve": "shelve and offload",
    "unshelve": "unshelve",
    "delete": "delete",
    "show": "GET /servers/{id}",
    "detail": "GET /servers/detail, 200 servers",
    "resize x20": "20 concurrent cross-cell resizes",
}
LISTED = 200
CONCURRENT = 20
# What is done to one server, one after the other.
MOVE_ROUNDS = (
    (("resize", RESIZE), ("confirm", CONFIRM)),
    (("resize", RESIZE), ("revert", REVERT)),
    (("same-cell", RESIZE_IN_CELL), ("same-cell confirm", CONFIRM)),
)
MOVES = ("resize", "confirm", "revert", "same-cell", "same-cell confirm")
# How often hosts get events of the server's one port: each of the two that a move or its revert concerns.
EVENTS_OF = {"resize": 2, "confirm": 0, "revert": 2, "same-cell": 2, "same-cell confirm": 0}
# A request that only reads is over too soon to be measured by itself.
READS = 20


@dataclass
class Series:
    """The runs of one operation, in milliseconds; ``placement`` and ``journal`` are the parts that these took.

    ``spent``: what the whole process worked for each, where that is measured with the times.
    """

    runs: list[float] = field(default_factory=list)
    placement: list[float] = field(default_factory=list)
    journal: list[float] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)

    def add(self, timing: Timing) -> None:
        self.runs.append(timing.visible * 1000)
        self.placement.append(timing.spent.get("placement", 0.0) * 1000)
        self.journal.append(timing.spent.get("journal", 0.0) * 1000)


def measure_moves(cloud: MeasuredCloud, rounds: int) -> dict[str, Series]:
    """Resize and confirm, resize and revert, resize inside a cell, in turn. The first round is not counted."""
    found = {name: Series() for name in MOVES}
    for number in range(rounds + 1):
        for acts in MOVE_ROUNDS:
            server = cloud.boot()
            for name, action in acts:
                moves = cloud.hooks.moves_ended
                timing = cloud.act(server, action)
                cloud.settle(moves + 1)
                if number:
                    found[name].add(timing)
            cloud.client.call("DELETE", f"/servers/{server}")
    return found


def measure_lifecycle(cloud: MeasuredCloud, rounds: int) -> dict[str, Series]:
    """A server is made, given a volume, shelved and so on, again and again. The first one is not counted."""
    found: dict[str, Series] = {}
    with Lifecycle(cloud) as lifecycle:
        for number in range(rounds + 1):
            for name, cost in lifecycle.live().items():
                if number:
                    found.setdefault(name, Series()).add(cost.timing)
    return found


def measure_concurrent(cloud: MeasuredCloud, rounds: int) -> Series:
    """From the arrival of the first request until the last of the servers is in VERIFY_RESIZE.

    What is spent counts until the moves have ended, with the clients' part.
    """
    found = Series()
    clients = [cloud.connect() for _number in range(CONCURRENT)]
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="users") as users:
        for number in range(rounds + 1):
            servers, hooks = [cloud.boot() for _client in clients], cloud.hooks
            moves, before, worked = hooks.moves_ended, hooks.spent.copy(), cloud.meter.look()
            list(users.map(cloud.act, servers, [RESIZE] * CONCURRENT, clients))
            took = max(hooks.visible[uuid] for uuid in servers) - min(hooks.arrived[uuid] for uuid in servers)
            within = hooks.spent_since(before)
            cloud.settle(moves + CONCURRENT)
            if number:
                found.add(Timing(took, within))
                found.spent.append(cloud.meter.look() - worked)
            list(users.map(cloud.act, servers, [CONFIRM] * CONCURRENT, clients))
            cloud.settle(moves + 2 * CONCURRENT)
            for server in servers:
                cloud.client.call("DELETE", f"/servers/{server}")
    for client in clients:
        client.close()
    return found


def measure_get(cloud: MeasuredCloud, path: str, rounds: int) -> Series:
    """At the client, headers sent to body read."""
    found = Series()
    for number in range(rounds + 5):
        began = time.perf_counter()
        cloud.client.read("GET", path)
        took = time.perf_counter() - began
        if number >= 5:
            found.add(Timing(took))
    return found


def count_all(cloud: MeasuredCloud, rounds: int = 1) -> dict[str, list[Counts]]:
    """What each operation costs, ``rounds`` times, on a cloud that does nothing else (``quiet``). Before that it warms up."""
    found: dict[str, list[Counts]] = {}
    servers: list[str] = []
    for number in range(rounds + 1):
        for acts in MOVE_ROUNDS:
            server = cloud.boot()
            servers.append(server)
            for name, action in acts:
                counts = cloud.counted(server, action, events=EVENTS_OF[name])
                if number:
                    found.setdefault(name, []).append(counts)
    found["show"] = _count_gets(cloud, f"/servers/{servers[-1]}", rounds)
    for name, runs in _count_lifecycle(cloud, rounds).items():
        found[name] = runs
    # Of those that were moved, whom a list looks at twice, there are as many whatever ``rounds`` is.
    for server in servers[: -len(MOVE_ROUNDS)]:
        cloud.client.call("DELETE", f"/servers/{server}")
    cloud.work.wait(cloud.work.is_done, "the deletions to end")
    present = len(cloud.client.call("GET", "/servers")["servers"])
    fill(cloud, LISTED - present)
    found["detail"] = _count_gets(cloud, "/servers/detail", rounds)
    return found


def _count_lifecycle(cloud: MeasuredCloud, rounds: int) -> dict[str, list[Counts]]:
    found: dict[str, list[Counts]] = {}
    with Lifecycle(cloud) as lifecycle:
        for number in range(rounds + 1):
            lives = lifecycle.live()
            # The network service was told that the server of a deleted port is gone, and logs in anew for what it tells next.
            cloud.boot()
            if number:
                for name, cost in lives.items():
                    found.setdefault(name, []).append(cost.counts)
    return found


def _count_gets(cloud: MeasuredCloud, path: str, rounds: int) -> list[Counts]:
    """The calls of one request; what was spent on it is the mean of some."""
    found = []
    cloud.client.read("GET", path)
    for _round in range(rounds):
        before = cloud.counts()
        cloud.client.read("GET", path)
        counts = cloud.counts() - before
        for _read in range(READS - 1):
            cloud.client.read("GET", path)
        found.append(replace(counts, spent=(cloud.counts().spent - before.spent) / READS))
    return found


def fill(cloud: MeasuredCloud, servers: int = LISTED) -> None:
    """Records of running servers, evenly over the cells, with a port, metadata and a tag each."""
    embedded = cloud.embedded
    cells = embedded.cells.mappings(cell0=False)
    for number in range(servers):
        cell = cells[number % len(cells)]
        database = embedded.cells.database(cell.uuid)
        host = hosts.list_nodes(database)[0]
        instance = _server(cloud, number, host.host, host.hypervisor_hostname)
        with embedded.api_database.write() as connection:
            mapping = mappings.InstanceMapping(
                instance.uuid,
                instance.project_id,
                instance.user_id,
                instance.created_at or utcnow(),
                cell_uuid=cell.uuid,
                deleted=False,
            )
            mappings.insert_in(connection, mapping)
        with database.write() as connection:
            instances.insert(connection, instance)


def _server(cloud: MeasuredCloud, number: int, host: str, node: str) -> Instance:
    now = utcnow()
    return Instance(
        uuid=str(uuid.uuid4()),
        project_id=cloud.project_id,
        user_id=cloud.user_id,
        display_name=f"listed-{number}",
        hostname=f"listed-{number}",
        flavor=Flavor("any.small", "any.small", vcpus=1, memory_mb=128, root_gb=1),
        host=host,
        node=node,
        availability_zone="nova",
        vm_state=VmState.ACTIVE,
        power_state=PowerState.RUNNING,
        image_ref=cloud.image_id,
        metadata={"role": "benchmark", "number": str(number)},
        tags=["benchmark"],
        network_info=[
            Vif(
                id=str(uuid.uuid4()),
                address=f"fa:16:3e:00:{number // 256:02x}:{number % 256:02x}",
                network_id=cloud.network_id,
                network_label="demo-net",
                fixed_ips=[FixedIp(f"10.1.{number // 256}.{number % 256}", "subnet", cidr="10.1.0.0/16")],
                active=True,
            )
        ],
        launched_at=now,
        created_at=now,
        updated_at=now,
    )
