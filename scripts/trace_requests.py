"""Counts what a request passes: files and functions of ``src/causeway``, and how often it climbs.

    scripts/trace_requests.py                    every request, as a table
    scripts/trace_requests.py attach drain       these requests only
    scripts/trace_requests.py --json             for a comparison of two commits
    scripts/trace_requests.py --climbs           also where each request climbs

Run it with the Python of ``.venv``. Each request is made in an embedded cloud of its own (two cells with two simulated hosts
each), for the second time: what is only done once, as imports and logins, is not counted.

A function is what has a name and a body; comprehensions and the bodies of classes and modules are part of what they are in. The
services around, of which the embedded cloud has its own (devcloud), are counted too; ``--json`` counts by package.

A climb is a call from a package on a lower floor directly to one on a higher floor. The floors are the layers of
``pyproject.toml``. Packages that share a line of it share a floor, and those that are in no line have none. A call that goes
through a library (a pool of threads, `contextlib`) or over a connection is no climb: its caller does not know who is called.
One call may climb many times, in loops for example, and how often is chance where threads wait for one another. So "climbs"
counts pairs of a caller and a called function, and "in all" every call.

Threads of the embedded cloud serve whoever comes next, and one request passes many of them, so nothing about a thread says for
whom it works. Instead, the cloud does nothing else: reports, leases and the like have intervals of hours. What is periodic all
the same (web servers look for idle connections; where there is a drain to carry out, a conductor looks for drains every two
seconds) is seen while the cloud is left alone for three seconds between the two requests. These functions are not counted, and
the table says how many they were. Calls of this script's own thread, which looks whether the request has ended, are not
recorded. A request has ended when its result is there, no operation is under way, and for a while nothing was called that would
be counted.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from rich.console import Console
from rich.table import Table

import causeway
from causeway.context import admin_context
from causeway.embedded.cloud import EmbeddedCloud
from causeway.store.api import drains, journal

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path(causeway.__file__).parent
# Seconds: after which nothing more comes of a request; that a cloud is left alone; until a request must have ended.
PAUSE = 0.8
REST = 3.0
PATIENCE = 180.0
# Between two looks at drains: longer than the pause.
LOOKS = 2.0
_INNER = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def read_floors(pyproject: Path) -> dict[str, int]:
    """Package or module right below ``causeway`` -> its floor, 0 for the lowest."""
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (
        each["layers"] for each in contracts if each["type"] == "layers" and each["containers"] == ["causeway"]
    )
    return {
        name.strip(): floor
        for floor, layer in enumerate(reversed(layers))
        for name in layer.replace(":", "|").split("|")
    }


@dataclass(frozen=True)
class Function:
    """``path``: below ``src/causeway``."""

    path: str
    name: str
    line: int

    @property
    def package(self) -> str:
        return self.path.split("/")[0].removesuffix(".py")

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}"


@dataclass
class Trace:
    """What was called while it was recorded."""

    floors: dict[str, int]
    functions: set[Function] = field(default_factory=set)
    climbs: Counter[tuple[Function, Function]] = field(default_factory=Counter)

    def add(self, caller: Function | None, called: Function) -> None:
        self.functions.add(called)
        if caller is None:
            return
        below, above = self.floors.get(caller.package), self.floors.get(called.package)
        if below is not None and above is not None and below < above:
            self.climbs[caller, called] += 1

    def summary(self) -> dict[str, int]:
        return {
            "files": len({function.path for function in self.functions}),
            "functions": len(self.functions),
            "climbs": len(self.climbs),
            "climbs in all": self.climbs.total(),
        }

    def packages(self) -> dict[str, int]:
        """Package -> how many of its functions were called."""
        return dict(sorted(Counter(function.package for function in self.functions).items()))


class Recorder:
    """Sees the calls of all threads but the one that made it. Must be installed before the threads start."""

    def __init__(self, floors: dict[str, int], source: Path = SOURCE) -> None:
        self._floors = floors
        self._root = f"{source}/"
        # By identity: equal code of two files is equal. It is kept, for identities are given again.
        self._known: dict[int, tuple[CodeType, Function | None]] = {}
        self._trace: Trace | None = None
        #: what is not recorded
        self.periodic: frozenset[Function] = frozenset()
        #: of `time.monotonic`: when something was recorded
        self.latest = 0.0

    def __enter__(self) -> Recorder:
        threading.setprofile(self._profile)
        return self

    def __exit__(self, *_raised: object) -> None:
        threading.setprofile(None)
        self._trace = None

    def begin(self) -> Trace:
        self.latest = time.monotonic()
        self._trace = Trace(self._floors)
        return self._trace

    def end(self) -> None:
        self._trace = None

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        trace = self._trace
        if trace is None or event != "call":
            return
        called = self._function(frame.f_code)
        if called is None or called in self.periodic:
            return
        caller = frame.f_back
        while caller is not None and caller.f_code.co_name in _INNER:
            caller = caller.f_back
        # Of a trace that has ended in between nobody asks.
        trace.add(None if caller is None else self._function(caller.f_code), called)
        self.latest = time.monotonic()

    def _function(self, code: CodeType) -> Function | None:
        known = self._known.get(id(code))
        if known is None:
            known = self._known[id(code)] = code, self._describe(code)
        return known[1]

    def _describe(self, code: CodeType) -> Function | None:
        is_function = code.co_flags & inspect.CO_NEWLOCALS and code.co_name not in _INNER
        if not is_function or not code.co_filename.startswith(self._root):
            return None
        return Function(code.co_filename.removeprefix(self._root), code.co_qualname, code.co_firstlineno)


class TracedCloud:
    """An embedded cloud in which nothing periodic happens. ``drain_interval``: seconds; 0: it carries out no drains."""

    def __init__(self, stack: ExitStack, *, drain_interval: float) -> None:
        hours = 36_000
        options: dict[str, dict[str, Any]] = {
            "DEFAULT": {"report_interval": hours, "service_down_time": 2 * hours},
            "moves": {"lease": float(hours)},
            "scheduler": {"host_state_max_age": float(hours)},
            "api_database": {"cells_refresh_interval": float(hours), "sqlite_synchronous": False},
            "drains": {"interval": drain_interval},
        }
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="causeway-trace-")))
        self.embedded = EmbeddedCloud(state, port=0, cells=2, hosts_per_cell=2, overrides=options)
        self.embedded.start()
        stack.callback(self.embedded.stop)
        account = self.embedded.accounts["admin"]
        password = v3.Password(
            self.embedded.accounts.auth_url,
            username=account.username,
            password=account.password,
            project_name="demo",
            user_domain_id=account.domain_id,
            project_domain_id=account.domain_id,
        )
        self.session = Session(auth=password)
        stack.callback(self.session.session.close)
        self._image = self._ask("image", "GET", "/v2/images?name=demo")["images"][0]["id"]
        self._network = self._ask("network", "GET", "/v2.0/networks")["networks"][0]["id"]
        # Which host a server gets is chance, and should make no difference: each has the image already.
        for compute in self.embedded.computes.values():
            compute.host.image_cache.fetch(admin_context(), self._image)

    def _ask(self, service: str, method: str, path: str, body: Any = None) -> Any:
        answer = self.session.request(
            path, method, json=body, endpoint_filter={"service_type": service}, connect_retries=0
        )
        return answer.json()

    def call(self, method: str, path: str, body: Any = None, version: str = "2.96") -> Any:
        """The Compute API's answer."""
        answer = self.session.request(
            f"{self.embedded.url}/compute/v2.1{path}",
            method,
            json=body,
            headers={"OpenStack-API-Version": f"compute {version}"},
            timeout=PATIENCE,
        )
        return answer.json() if answer.content else None

    def boot(self, flavor: str) -> str:
        """An ACTIVE server on the first host of the first cell."""
        wanted = {
            "name": "traced",
            "imageRef": self._image,
            "flavorRef": flavor,
            "networks": [{"uuid": self._network}],
            "host": "cell1-host1",
        }
        server: str = self.call("POST", "/servers", {"server": wanted})["server"]["id"]
        self.becomes(server, "ACTIVE")
        return server

    def make_volume(self) -> str:
        body = {"volume": {"name": "traced", "size": 1}}
        return str(self._ask("volumev3", "POST", "/volumes", body)["volume"]["id"])

    def act(self, server: str, action: str, body: Any) -> None:
        self.call("POST", f"/servers/{server}/action", {action: body})

    def becomes(self, server: str, status: str, host: str | None = None) -> None:
        """Checks the end of what was done, and waits for it if nothing is recorded."""

        def seen() -> bool:
            found = self.call("GET", f"/servers/{server}")["server"]
            if found["status"] == "ERROR":
                raise RuntimeError(f"server {server}: {found.get('fault')}")
            at = found["OS-EXT-SRV-ATTR:host"]
            return found["status"] == status and found["OS-EXT-STS:task_state"] is None and host in (None, at)

        wait_until(seen, f"{server} to become {status}")

    def is_idle(self) -> bool:
        return not journal.unfinished(self.embedded.api_database)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {what} for {PATIENCE:.0f} seconds")
        time.sleep(0.05)


# Each makes what it needs, calls `record` with what sends the request and what says that its result is there, and checks it.
Record = Callable[[Callable[[], object], Callable[[], bool]], None]


def cross_cell_resize(cloud: TracedCloud, record: Record) -> None:
    server = cloud.boot("gen1.small")
    record(lambda: cloud.act(server, "resize", {"flavorRef": "gen2.small"}), cloud.is_idle)
    cloud.becomes(server, "VERIFY_RESIZE")


def resize(cloud: TracedCloud, record: Record) -> None:
    bigger = {"name": "gen1.medium", "id": "gen1.medium", "vcpus": 2, "ram": 192, "disk": 2}
    if bigger["id"] not in [each["id"] for each in cloud.call("GET", "/flavors")["flavors"]]:
        cloud.call("POST", "/flavors", {"flavor": bigger})
        specs = {"extra_specs": {"aggregate_instance_extra_specs:gen": "1"}}
        cloud.call("POST", "/flavors/gen1.medium/os-extra_specs", specs)
    server = cloud.boot("gen1.small")
    record(lambda: cloud.act(server, "resize", {"flavorRef": "gen1.medium"}), cloud.is_idle)
    cloud.becomes(server, "VERIFY_RESIZE")


def live_migration(cloud: TracedCloud, record: Record) -> None:
    server = cloud.boot("gen1.small")
    body = {"host": "cell1-host2", "block_migration": "auto"}
    record(lambda: cloud.act(server, "os-migrateLive", body), cloud.is_idle)
    cloud.becomes(server, "ACTIVE", "cell1-host2")


def attach(cloud: TracedCloud, record: Record) -> None:
    server, volume = cloud.boot("gen1.small"), cloud.make_volume()
    path, body = f"/servers/{server}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume}}
    record(lambda: cloud.call("POST", path, body), cloud.is_idle)
    (found,) = cloud.call("GET", path)["volumeAttachments"]
    if found["volumeId"] != volume or cloud.call("GET", f"/servers/{server}")["server"]["status"] != "ACTIVE":
        raise RuntimeError(f"volume {volume} was not attached to {server}")


def drain(cloud: TracedCloud, record: Record) -> None:
    server = cloud.boot("any.small")
    made: list[str] = []
    wanted = {"name": f"of {server}", "scope": {"servers": [server]}, "targets": {"cells": ["cell2"]}}

    def plan_and_start() -> None:
        made.append(cloud.call("POST", "/os-causeway/drains", {"drain": wanted}, "2.1")["drain"]["id"])
        cloud.call("POST", f"/os-causeway/drains/{made[0]}/action", {"start": None}, "2.1")

    def is_done() -> bool:
        found = drains.get(cloud.embedded.api_database, made[0])
        return found.ended_at is not None and cloud.is_idle()

    record(plan_and_start, is_done)
    if not cloud.call("GET", f"/servers/{server}")["server"]["OS-EXT-SRV-ATTR:host"].startswith("cell2"):
        raise RuntimeError(f"server {server} was not moved: {cloud.call('GET', f'/os-causeway/drains/{made[0]}')}")


@dataclass(frozen=True)
class Request:
    title: str
    make: Callable[[TracedCloud, Record], None]
    drain_interval: float = 0.0


REQUESTS = {
    "cross-cell-resize": Request("cross-cell resize", cross_cell_resize),
    "resize": Request("resize inside a cell", resize),
    "live-migration": Request("live migration inside a cell", live_migration),
    "attach": Request("attach a volume", attach),
    "drain": Request("drain of one server", drain, drain_interval=LOOKS),
}


def trace(request: Request, floors: dict[str, int]) -> tuple[Trace, frozenset[Function]]:
    """Makes a request twice, in a cloud of its own. Returns what the second one passed, and what was periodic meanwhile."""
    found: list[Trace] = []
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(floors))
        cloud = TracedCloud(stack, drain_interval=request.drain_interval)

        def settle() -> None:
            wait_until(lambda: time.monotonic() - recorder.latest > PAUSE, "the cloud to be at rest")

        def warm_up(send: Callable[[], object], is_done: Callable[[], bool]) -> None:
            send()
            wait_until(is_done, f"{request.title} to end")

        def record(send: Callable[[], object], is_done: Callable[[], bool]) -> None:
            # What came before, as the server's build, has to end first.
            recorder.begin()
            settle()
            found.append(recorder.begin())
            send()
            wait_until(is_done, f"{request.title} to end")
            settle()
            recorder.end()

        request.make(cloud, warm_up)
        # The end of the first one is not periodic.
        time.sleep(REST)
        alone = recorder.begin()
        time.sleep(REST)
        recorder.end()
        recorder.periodic = frozenset(alone.functions)
        request.make(cloud, record)
    return found[-1], recorder.periodic


def as_json(traced: Trace, periodic: frozenset[Function]) -> dict[str, Any]:
    climbs = Counter({f"{caller} -> {called}": count for (caller, called), count in traced.climbs.items()})
    return traced.summary() | {
        "periodic": sorted(map(str, periodic)),
        "by package": traced.packages(),
        "where": dict(climbs.most_common()),
    }


def show(found: dict[str, dict[str, Any]], *, climbs: bool) -> None:
    table = Table(title="What requests pass")
    table.add_column("request")
    columns = ("files", "functions", "climbs", "climbs in all")
    for column in (*columns, "not counted"):
        table.add_column(column, justify="right")
    for name, counts in found.items():
        cells = (*(counts[column] for column in columns), len(counts["periodic"]))
        table.add_row(REQUESTS[name].title, *(f"{cell:,}" for cell in cells))
    Console().print(table)
    if climbs:
        for name, counts in found.items():
            print(f"\n{REQUESTS[name].title} climbs:")
            for where, count in counts["where"].items():
                print(f"{count:6} {where}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Counts the files, functions and climbs of requests.")
    parser.add_argument("requests", nargs="*", metavar="REQUEST", help=f"{', '.join(REQUESTS)}; all if none is named")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--climbs", action="store_true", help="also where each request climbs, and how often")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.requests if name not in REQUESTS]:
        parser.error(f"there is no {', '.join(unknown)}: {', '.join(REQUESTS)}")
    floors = read_floors(ROOT / "pyproject.toml")
    found = {name: as_json(*trace(REQUESTS[name], floors)) for name in given.requests or REQUESTS}
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        show(found, climbs=given.climbs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
