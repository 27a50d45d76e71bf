"""A cloud that can be measured: hooks where operations begin, become visible and end."""

from __future__ import annotations

import functools
import http.client
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tenacity
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from placement import db_api
from sqlalchemy import event

from benchmarks import callgrind
from benchmarks.counting import Counts, look
from benchmarks.instructions import Meter
from benchmarks.shares import Shares
from benchmarks.work import Work
from causeway.api.app import Entrance
from causeway.clients.network_cache import NetworkCache
from causeway.clients.placement.http import PlacementHttp
from causeway.compute.guests.external_events import EventsEndpoint
from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.content import GENERATION
from causeway.model.flavor import Flavor
from causeway.moves import cells_run
from causeway.moves.move_run import Run
from causeway.moves.steps.confirm import FinishConfirm
from causeway.moves.steps.records import MoveRecord, ShowTarget
from causeway.moves.steps.revert import FinishRevert
from causeway.rpc import late_answers
from causeway.sagas.keeper import Keeper
from causeway.store import mapped_pages
from causeway.store.api import flavors, journal, recording

PATIENCE = 600.0 if callgrind.is_on() else 60.0
# After these the API shows VERIFY_RESIZE, or ACTIVE.
VISIBLE_AFTER = (ShowTarget, MoveRecord, FinishConfirm, FinishRevert)
# What the network service tells us, as a key of `Hooks.api_requests`.
EVENTS = "compute POST /v2.1/os-server-external-events"
_CLIENT = "benchmarks"
# Larger than gen1.small, and as much bound to the first cell.
SAME_CELL = Flavor("gen1.medium", "gen1.medium", vcpus=2, memory_mb=192, root_gb=2, extra_specs={GENERATION: "1"})


@dataclass
class Hooks:
    """What the hooks have seen. Times are of `time.perf_counter`."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    arrived: dict[str, float] = field(default_factory=dict)
    visible: dict[str, float] = field(default_factory=dict)
    moves_ended: int = 0
    events_delivered: Counter[str] = field(default_factory=Counter)
    api_requests: Counter[str] = field(default_factory=Counter)
    placement_sql: int = 0
    # part of a service -> seconds in it, of all threads
    spent: dict[str, float] = field(default_factory=lambda: {"placement": 0.0, "journal": 0.0})

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        with self.changed:
            if not self.changed.wait_for(condition, PATIENCE):
                raise TimeoutError(f"waited for {what} for {PATIENCE:.0f} seconds")

    def spent_since(self, before: Mapping[str, float]) -> dict[str, float]:
        return {part: seconds - before[part] for part, seconds in self.spent.items()}

    def install(self, stack: ExitStack) -> None:
        """To be called before the cloud starts; the stack takes them out again."""
        for owner, name, make in (
            (Entrance, "__call__", self._on_request),
            (Keeper, "_run", self._on_move),
            (EventsEndpoint, "external_instance_events", self._on_events),
            (PlacementHttp, "call", self._timed("placement")),
            # Intents, outcomes and epochs, with what is written in the same transactions.
            (journal, "acquire", self._timed("journal")),
            (recording, "record", self._timed("journal")),
            *((step, "do", self._on_last_step) for step in VISIBLE_AFTER),
        ):
            original = getattr(owner, name)
            stack.enter_context(patch.object(owner, name, functools.wraps(original)(make(original))))

    def count_placement(self, stack: ExitStack) -> None:
        """Counts the statements of the Placement in this process, which must have been started."""
        engine = db_api.placement_context_manager.writer.get_engine()

        def count(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            # The beginning of a transaction is none; nor is it with ours.
            if statement != "BEGIN":
                with self.changed:
                    self.placement_sql += 1

        event.listen(engine, "before_cursor_execute", count)
        stack.callback(event.remove, engine, "before_cursor_execute", count)

    def _on_request(self, original: Any) -> Any:
        def hooked(app: Any, environ: dict[str, Any], start_response: Any) -> Any:
            now = time.perf_counter()
            parts = environ["PATH_INFO"].split("/")
            with self.changed:
                if parts[-1] == "action":
                    self.arrived[parts[-2]] = now
                if environ.get("HTTP_USER_AGENT") != _CLIENT:
                    self.api_requests[f"compute {environ['REQUEST_METHOD']} {environ['PATH_INFO']}"] += 1
            return original(app, environ, start_response)

        return hooked

    def _on_move(self, original: Any) -> Any:
        def hooked(keeper: Any, *args: Any) -> Any:
            try:
                return original(keeper, *args)
            finally:
                with self.changed:
                    self.moves_ended += 1
                    self.changed.notify_all()

        return hooked

    def _on_events(self, original: Any) -> Any:
        def hooked(endpoint: Any, context: Any, *, events: Any) -> Any:
            original(endpoint, context, events=events)
            with self.changed:
                for event in events:
                    self.events_delivered[event.server_uuid] += 1
                self.changed.notify_all()

        return hooked

    def _timed(self, part: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def hooked(*args: Any, **kwargs: Any) -> Any:
                began = time.perf_counter()
                try:
                    return original(*args, **kwargs)
                finally:
                    with self.changed:
                        self.spent[part] += time.perf_counter() - began

            return hooked

        return make

    def _on_last_step(self, original: Any) -> Any:
        def hooked(step: Any, run: Run) -> None:
            original(step, run)
            with self.changed:
                self.visible[run.uuid] = time.perf_counter()
                self.changed.notify_all()

        return hooked


@dataclass
class Client:
    """A user at the other end of one kept-alive connection."""

    host: str
    port: int
    token: str

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer of the Compute API; raises RuntimeError for 4xx and 5xx."""
        answer = self.read(method, path, body)
        return json.loads(answer) if answer else None

    def read(self, method: str, path: str, body: Any = None) -> bytes:
        """The answer as it comes."""
        headers = {
            "X-Auth-Token": self.token,
            "OpenStack-API-Version": "compute 2.96",
            "User-Agent": _CLIENT,
            "Content-Type": "application/json",
        }
        data = json.dumps(body).encode() if body is not None else None
        self._connection.request(method, f"/compute/v2.1{path}", data, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status}: {answer.decode(errors='replace')}")
        return answer

    def close(self) -> None:
        self._connection.close()


@dataclass
class Timing:
    """Seconds from the arrival of the request until its result was visible, and how much of it each part took."""

    visible: float
    spent: Mapping[str, float] = field(default_factory=dict)


class MeasuredCloud:
    """An embedded cloud with hooks in it; a context manager. One at a time in a process."""

    def __init__(
        self, state_dir: Path, *, quiet: bool = False, hosts_per_cell: int = 2, synchronous: bool = True
    ) -> None:
        """``quiet``: nothing periodic happens and ports are plugged late, so that what is counted is exact.

        ``synchronous``: SQLite syncs what is committed.
        """
        options: dict[str, dict[str, Any]]
        if quiet:
            options = {
                "DEFAULT": {"report_interval": 36_000, "service_down_time": 72_000},
                "moves": {"lease": 36_000.0},
                "scheduler": {"host_state_max_age": 36_000.0},
                "api_database": {"cells_refresh_interval": 36_000.0},
                "drains": {"interval": 0.0},
            }
        else:
            options = {}
        # Twenty servers are more than the default quota allows.
        options["quota"] = {"instances": 100, "cores": 200, "ram": 102_400}
        options.setdefault("api_database", {})["sqlite_synchronous"] = synchronous
        self._quiet = quiet
        self.hooks = Hooks()
        self.shares = Shares()
        self.work = Work(_CLIENT, PATIENCE)
        self.embedded = EmbeddedCloud(state_dir, port=0, cells=2, hosts_per_cell=hosts_per_cell, overrides=options)
        self._stack = ExitStack()

    def __enter__(self) -> MeasuredCloud:
        with ExitStack() as stack:
            self.hooks.install(stack)
            # After the others, and so around them: what has been done was noted by them.
            self.work.install(stack, hold_news=self._quiet)
            self.shares.install(stack)
            if self._quiet:
                self._stop_clocks(stack)
            # Threads that are started from here on are counted.
            self.meter = Meter()
            stack.callback(self.meter.close)
            self.embedded.start()
            stack.callback(self.embedded.stop)
            self.hooks.count_placement(stack)
            flavors.create(self.embedded.api_database, replace(SAME_CELL))
            if self._quiet:
                self.embedded.devcloud.plug_delay = 0.1
            account = self.embedded.accounts["demo"]
            auth = v3.Password(
                self.embedded.accounts.auth_url,
                username=account.username,
                password=account.password,
                project_name=account.project_name,
                user_domain_id=account.domain_id,
                project_domain_id=account.domain_id,
            )
            session = Session(auth=auth)
            self._token = str(session.get_token())
            self.project_id, self.user_id = str(session.get_project_id()), str(session.get_user_id())
            self.image_id = session.get("/v2/images?name=demo", endpoint_filter={"service_type": "image"}).json()[
                "images"
            ][0]["id"]
            networks = session.get("/v2.0/networks", endpoint_filter={"service_type": "network"}).json()["networks"]
            self.network_id = networks[0]["id"]
            self._session = session
            self.client = self.connect()
            stack.callback(self.client.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    @staticmethod
    def _stop_clocks(stack: ExitStack) -> None:
        """What an operation costs does not depend on how many seconds ago there was another one."""
        # How long the networks of ports are remembered.
        stack.enter_context(patch.object(NetworkCache.__init__, "__defaults__", (36_000.0,)))
        # For how long lists look again at servers that have been moved.
        stack.enter_context(patch.object(mapped_pages, "CLOCK_SKEW", timedelta(hours=10)))
        # After how long a call of a slow host is no longer waited for.
        stack.enter_context(patch.object(late_answers, "PROMPT", 36_000.0))
        # For how long a step goes by what the one before it read.
        stack.enter_context(patch.object(cells_run, "RECENT", 36_000.0))

    def connect(self) -> Client:
        return Client("127.0.0.1", self.embedded.web.port, self._token)

    def counts(self) -> Counts:
        hooks = self.hooks
        spent = self.shares.look(self.meter.look)
        return look(self.embedded, hooks.api_requests, placement_sql=hooks.placement_sql, spent=spent)

    def make_volume(self) -> str:
        """Makes an empty volume, which is available at once."""
        answer = self._session.post(
            "/volumes",
            json={"volume": {"name": "benchmark", "size": 1}},
            endpoint_filter={"service_type": "volumev3"},
        )
        return str(answer.json()["volume"]["id"])

    def describe(self, flavor: str = "gen1.small") -> dict[str, Any]:
        """What a user asks for: a server with one port, metadata and a tag."""
        return {
            "name": f"server-{uuid.uuid4().hex[:8]}",
            "imageRef": self.image_id,
            "flavorRef": flavor,
            "networks": [{"uuid": self.network_id}],
            "metadata": {"role": "benchmark"},
            "tags": ["benchmark"],
        }

    def boot(self, flavor: str = "gen1.small") -> str:
        """Makes an ACTIVE server; returns its id."""
        server_id: str = self.client.call("POST", "/servers", {"server": self.describe(flavor)})["server"]["id"]
        waiting = tenacity.Retrying(
            wait=tenacity.wait_fixed(0.02),
            stop=tenacity.stop_after_delay(PATIENCE),
            retry=tenacity.retry_if_result(lambda found: found["status"] == "BUILD"),
        )
        found = waiting(lambda: self.client.call("GET", f"/servers/{server_id}")["server"])
        if found["status"] != "ACTIVE":
            raise RuntimeError(f"server {server_id} became {found['status']}: {found.get('fault')}")
        # Its end, and that of what was before, is nobody else's.
        self.work.wait(self.work.is_done, "the build to end")
        return server_id

    def act(self, server_id: str, action: dict[str, Any], client: Client | None = None) -> Timing:
        """Sends resize, confirmResize or revertResize, and returns when its result is visible."""
        hooks = self.hooks
        with hooks.changed:
            hooks.visible.pop(server_id, None)
            before = hooks.spent.copy()
        (client or self.client).call("POST", f"/servers/{server_id}/action", action)
        hooks.wait(lambda: server_id in hooks.visible, f"{', '.join(action)} of {server_id}")
        with hooks.changed:
            return Timing(hooks.visible[server_id] - hooks.arrived[server_id], hooks.spent_since(before))

    def settle(self, moves: int) -> None:
        """Waits until so many moves have ended since the start of the cloud."""
        self.hooks.wait(lambda: self.hooks.moves_ended >= moves, f"{moves} moves to end")

    def counted(self, server_id: str, action: dict[str, Any], events: int) -> Counts:
        """What an action costs from the request to the end of all that it caused.

        ``events``: how many times hosts get events of this server because of it.
        """
        before, moves = self.counts(), self.hooks.moves_ended
        delivered = self.hooks.events_delivered[server_id] + events
        self.act(server_id, action)
        self.settle(moves + 1)
        self.hooks.wait(lambda: self.hooks.events_delivered[server_id] >= delivered, "the events of ports")
        return self.counts() - before
