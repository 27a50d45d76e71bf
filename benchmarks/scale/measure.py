"""What is measured of a cloud that runs: lists and shows, decisions of the scheduler, moves between cells."""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
import uuid as uuids
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from benchmarks.scale.deployment import GENERATIONS, PATIENCE, SMALL, Deployment, until
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.model.sagas import ENDED, SagaState
from causeway.rpc.scheduler import SchedulerClient
from causeway.rpc.transport import Transports
from causeway.scheduler.request import RequestSpec
from causeway.store.api_tables import Operations
from causeway.store.database import utcnow

WARM_UP = 8
OPERATIONS: sa.Table = Operations.__table__  # type: ignore[assignment]


@dataclass
class Times:
    """Seconds of one kind of request."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def worst(self) -> float:
        """The 99th percentile."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


class Client:
    """A user at the other end of one kept-alive connection."""

    def __init__(self, address: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        self._headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": "compute 2.96",
            "Content-Type": "application/json",
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer; raises RuntimeError for 4xx and 5xx."""
        data = json.dumps(body).encode() if body is not None else None
        # The API closes connections that are idle for two seconds.
        self._connection.close()
        self._connection.request(method, f"/v2.1{path}", data, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status}: {answer.decode(errors='replace')}")
        return json.loads(answer) if answer else None

    def timed(self, path: str) -> float:
        began = time.perf_counter()
        self._connection.request("GET", f"/v2.1{path}", None, self._headers)
        response = self._connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"GET {path}: {response.status}")
        return time.perf_counter() - began


def get(client: Client, paths: Callable[[int], str], times: int) -> Times:
    # So that each of the API's processes has its connections and caches.
    for number in range(WARM_UP):
        client.timed(paths(number))
    return Times([client.timed(paths(number)) for number in range(times)])


def decide_once(deployment: Deployment, rabbit: str) -> None:
    """The first decision after a start looks up all hosts."""
    with _asking(deployment, rabbit) as ask:
        ask()


def decisions(deployment: Deployment, rabbit: str, seconds: float, callers: int) -> tuple[float, Times]:
    """Decisions a second over all hosts, each with its claim, asked for by some callers at once; and the time of each."""
    stop, times = threading.Event(), Times()
    with _asking(deployment, rabbit) as ask:

        def ask_on() -> None:
            while not stop.is_set():
                began = time.perf_counter()
                ask()
                times.seconds.append(time.perf_counter() - began)

        began = time.perf_counter()
        with ThreadPoolExecutor(callers, thread_name_prefix="caller") as pool:
            askers = [pool.submit(ask_on) for _ in range(callers)]
            try:
                stop.wait(seconds)
            finally:
                stop.set()
            for asker in askers:
                asker.result(PATIENCE)
        return len(times.seconds) / (time.perf_counter() - began), times


@contextmanager
def _asking(deployment: Deployment, rabbit: str) -> Iterator[Callable[[], None]]:
    """Has the scheduler decide about a server; all claims are discarded in the end."""
    transports = Transports(new_config(config_files=[], rpc_response_timeout=60))
    scheduler = SchedulerClient(transports.get(f"{rabbit}/cloud"))
    owner, placed = deployment.owner, list[str]()

    def ask() -> None:
        uuid = str(uuids.uuid4())
        placed.append(uuid)
        spec = RequestSpec(uuid, owner.project_id, owner.user_id, SMALL, is_new=True)
        scheduler.select_destinations(admin_context(), spec=spec, instance_uuids=[uuid], alternates=True)

    try:
        yield ask
    finally:
        transports.cleanup()
        _forget_claims(deployment, placed)


def _forget_claims(deployment: Deployment, consumers: list[str]) -> None:
    with deployment.placement.begin() as connection:
        for table, column in (("allocations", "consumer_id"), ("consumers", "uuid")):
            connection.execute(
                sa.text(f"DELETE FROM {table} WHERE {column} = ANY(:consumers)"), {"consumers": consumers}
            )


def build(
    deployment: Deployment, clients: Callable[[], Client], number: int, name: str = "mover", flavor: str | None = None
) -> list[str]:
    """So many servers with a guest and a port: those that will be moved. ``flavor`` None: half of each generation."""
    client = clients()
    uuids_of = []
    for turn in range(number):
        server = {
            "name": f"{name}-{turn}",
            "imageRef": deployment.image_id,
            "flavorRef": flavor or GENERATIONS[turn % min(2, len(deployment.cells))].flavorid,
            "networks": [{"uuid": deployment.network_id}],
        }
        uuids_of.append(client.call("POST", "/servers", {"server": server})["server"]["id"])

    def all_active() -> bool:
        found = client.call("GET", f"/servers/detail?name={name}&limit=1000")["servers"]
        statuses = Counter(server["status"] for server in found)
        if statuses["ERROR"]:
            raise RuntimeError(f"a server was not built: {[one.get('fault') for one in found]}")
        return statuses["ACTIVE"] == len(found) >= number

    until(all_active, f"{number} servers to be built")
    return uuids_of


@dataclass
class Moved:
    """``per_second``: resizes that were confirmed, over the time in which nothing but that happened."""

    per_second: float
    cycles: int
    failed: int
    resize: Times
    confirm: Times


class Watch:
    """How many moves of each server have ended since it was made: asked of the journal, for all servers at once."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._since = utcnow()
        self._changed = threading.Condition()
        self._ended: dict[str, list[str]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
        self._thread.start()

    def wait(self, server: str, number: int) -> str:
        """The state of the move of this number, once it has ended."""
        with self._changed:
            there = self._changed.wait_for(lambda: self.is_over or len(self._ended.get(server, [])) > number, PATIENCE)
            if not there or self.is_over:
                raise TimeoutError(f"a move of {server} does not end")
            return self._ended[server][number]

    def while_users(self, act: Callable[[str], None], servers: Sequence[str]) -> None:
        """Each server's user acts, all at once; if one fails, or this is interrupted, the others leave off. Closes the watch."""
        with ThreadPoolExecutor(len(servers), thread_name_prefix="user") as pool:
            try:
                for user in [pool.submit(act, server) for server in servers]:
                    user.result()
            finally:
                self.close()

    @property
    def is_over(self) -> bool:
        return self._stop.is_set()

    def _look(self) -> None:
        over = [state.value for state in ENDED]
        query = (
            sa.select(OPERATIONS.c.instance_uuid, OPERATIONS.c.state)
            .where(OPERATIONS.c.state.in_(over), OPERATIONS.c.ended_at >= self._since)
            .order_by(OPERATIONS.c.ended_at)
        )
        while not self._stop.wait(0.1):
            found: dict[str, list[str]] = {}
            with self._deployment.api_database.read() as connection:
                for uuid, state in connection.execute(query):
                    found.setdefault(uuid, []).append(state)
            with self._changed:
                self._ended = found
                self._changed.notify_all()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        with self._changed:
            self._changed.notify_all()


def moves(deployment: Deployment, clients: Callable[[], Client], servers: list[str], seconds: float) -> Moved:
    """All servers go to the other generation's cells and are confirmed there, again and again, for so long; once at least."""
    watch = Watch(deployment)
    resizes, confirms, ends, failed = Times(), Times(), list[float](), list[str]()
    lock = threading.Lock()
    began = time.perf_counter()
    over = began + seconds

    def one(server: str) -> None:
        client = clients()
        flavor = client.call("GET", f"/servers/{server}")["server"]["flavor"]["original_name"]
        number = 0
        while number == 0 or (not watch.is_over and time.perf_counter() < over):
            flavor = "gen1" if flavor == "gen2" else "gen2"
            for action, times in (({"resize": {"flavorRef": flavor}}, resizes), ({"confirmResize": None}, confirms)):
                started = time.perf_counter()
                client.call("POST", f"/servers/{server}/action", action)
                state = watch.wait(server, number)
                number += 1
                with lock:
                    times.seconds.append(time.perf_counter() - started)
                if state != SagaState.DONE.value:
                    failed.append(f"{server}: {action} {state}")
                    return
            with lock:
                ends.append(time.perf_counter())

    watch.while_users(one, servers)
    # Of the cycles that were begun in time, all are counted, and the time until the last of them.
    took = max(ends, default=over) - began
    return Moved(len(ends) / took, len(ends), len(failed), resizes, confirms)
