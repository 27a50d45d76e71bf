"""The matrix of faults: every point on the way of every operation, and what becomes of the server.

For resize, confirm and revert; across cells, inside one, and on one host; image- and volume-backed, with ephemeral disks, and
with a NUMA topology; each as it succeeds and (``given back``) as it fails and is undone. The points are not written down here:
an operation is run once, and those that it reaches are its cases. So a new step is covered when it is added.

A *batch* runs several cases at once on a server each: the first server to reach a point takes its fault. After it nobody
lends a hand: everything must settle by itself, with each server in exactly one cell, usable, its data intact, and nothing
left over; what waits for confirm is confirmed or reverted, and all are deleted, which leaves nothing.

Actions:

- ``error``: the step fails there, once.
- ``crash``: a cloud in a child process gets SIGKILL while a move of each server stands at its point; it is started again.
- ``hang``: the move stops there for longer than its lease, another conductor takes it over, then the first wakes.
- ``pause``, ``long-pause``: two conductors are processes over RabbitMQ; one gets SIGSTOP while moves stand at the points that
  it reaches, and is woken as soon as the other has taken them over, or when it is done with them. See `paused`.

``python -m tests.faults.matrix [--action ACTION] [--flow NAME] [--sample N] [--driver libvirt]`` runs them and prints the
table. With libvirt there are real guests in QEMU, and what crashes is the process of everything else: before, in and after
each step of moves across cells.
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import openstack.exceptions
from keystoneauth1 import exceptions as keystone_errors
from rich.console import Console
from rich.table import Table

from causeway.faults import injector
from causeway.faults.points import every_point
from causeway.model.states import VmState
from causeway.moves.recipes import RECIPES
from causeway.store.api import journal

from . import look, paused
from .roles_site import RolesSite, why_not
from .site import OPTIONS, WITH_NUMA, ChildSite, LibvirtSite, LocalSite, Site, chunks, until

ACTIONS = ("error", "crash", "hang", *paused.ACTIONS)
# Servers at once.
BATCH = {"error": 8, "crash": 20, "hang": 16, "pause": 12, "long-pause": 12}
# Real guests need their time and memory.
LIBVIRT_BATCH = 4
LONG = 3600
# Seconds without anything new after which what was not reached is not on the way. Longer than `vif_plugging_timeout`.
QUIET = 5.0
RULES: dict[str, dict[str, Any]] = {
    "error": {"error": True},
    "crash": {"delay": LONG},
    "hang": {"hang": 2 * OPTIONS["moves"]["lease"]},
    "pause": {"delay": LONG, "host": paused.PAUSED},
    "long-pause": {"delay": LONG, "host": paused.PAUSED},
}
# What comes from time to time, whatever moves do.
BACKGROUND = ("rpc.cell_conductor.report_host",)


@dataclass(frozen=True)
class Flow:
    """``spoiled_by``: a point that fails always, so that everything before it is undone."""

    operation: str
    reach: str
    backing: str
    spoiled_by: str | None = None

    @property
    def name(self) -> str:
        return f"{self.reach} {self.operation} {self.backing}" + (" given-back" if self.spoiled_by else "")

    @property
    def flavors(self) -> tuple[str, str]:
        if self.backing == "disks":
            return ("gen1.disks", "gen2.disks")
        if self.backing == "numa":
            return WITH_NUMA
        return {
            "cross": ("gen1.small", "gen2.small"),
            "same": ("host1.small", "host2.medium"),
            "host": ("host1.small", "host1.medium"),
        }[self.reach]


SPOILERS = {
    ("resize", "cross"): "cross_cell_resize.SwitchInstanceMapping.do.before",
    ("resize", "same"): "same_cell_resize.MoveRecord.do.before",
    ("resize", "host"): "same_cell_resize.MoveRecord.do.before",
    ("confirm", "cross"): "cross_cell_confirm.ConfirmResizeAtSource.do.before",
    ("confirm", "same"): "same_cell_confirm.ConfirmResize.do.before",
    ("confirm", "host"): "same_cell_confirm.ConfirmResize.do.before",
    ("revert", "cross"): "cross_cell_revert.SwitchInstanceMappingBack.do.before",
    ("revert", "same"): "same_cell_revert.BeginRevert.do.before",
    ("revert", "host"): "same_cell_revert.BeginRevert.do.before",
}
FLOWS = [
    Flow(operation, reach, backing, spoiled)
    for operation, reach, backing in [
        *product(("resize", "confirm", "revert"), ("cross", "same", "host"), ("image", "volume")),
        # with an ephemeral disk and swap
        ("resize", "cross", "disks"),
        ("revert", "cross", "disks"),
    ]
    for spoiled in (None, SPOILERS[operation, reach])
]
# Image-backed servers with a NUMA topology, so that hosts claim.
FLOWS += [
    Flow(operation, "cross", "numa", spoiled)
    for operation in ("resize", "confirm", "revert")
    for spoiled in (None, SPOILERS[operation, "cross"])
]


@dataclass
class Case:
    flow: Flow
    action: str
    point: str
    complaints: list[str] = field(default_factory=list)
    reached: bool = False

    @property
    def outcome(self) -> str:
        if not self.reached:
            return "not reached"
        if not self.complaints:
            return "recovered"
        return "lost" if any(look.is_lost(complaint) for complaint in self.complaints) else "leaked"


# servers


def boot(site: Site, flow: Flow, count: int) -> list[str]:
    fields: dict[str, Any] = {"image_id": site.image_id}
    if flow.backing == "volume":
        root = {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": site.image_id,
            "volume_size": 1,
            "delete_on_termination": True,
        }
        fields = {"block_device_mapping": [root]}
    made = [
        site.member.compute.create_server(
            name=f"server{number}", flavor_id=flow.flavors[0], networks=[{"uuid": site.network_id}], **fields
        ).id
        for number in range(count)
    ]
    for uuid in made:
        wait(site, uuid, VmState.ACTIVE)
        site.guests.mark(uuid, mark(uuid))
    return made


def mark(uuid: str) -> str:
    return f"data of {uuid}"


def wait(site: Site, uuid: str, state: VmState) -> None:
    found = until(
        lambda: look.record(site, uuid),
        lambda found: found is not None and found.vm_state in (state, VmState.ERROR) and found.task_state is None,
    )
    assert found is not None and found.vm_state is state, site.admin.compute.get_server(uuid)


def ask(site: Site, flow: Flow, operation: str, uuid: str, *, flavor: str | None = None) -> str | None:
    """Asks for the operation as a user; returns what the answer was if it was refused."""
    compute = site.member.compute
    try:
        if operation == "resize":
            compute.resize_server(uuid, flavor or flow.flavors[1])
        elif operation == "confirm":
            compute.confirm_server_resize(uuid)
        else:
            compute.revert_server_resize(uuid)
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as refusal:
        return str(refusal)
    return None


def prepare(site: Site, flow: Flow, count: int) -> list[str]:
    servers = boot(site, flow, count)
    if flow.operation != "resize":
        for uuid in servers:
            ask(site, flow, "resize", uuid)
        for uuid in servers:
            wait(site, uuid, VmState.RESIZED)
            until(lambda uuid=uuid: look.is_settled(site, uuid), bool)  # type: ignore[misc]
            if flow.backing == "volume":
                attach(site, uuid)
    return servers


def attach(site: Site, uuid: str) -> None:
    """A volume that only the target knows so far."""
    volume = site.member.block_storage.create_volume(size=1, name=f"data of {uuid}")
    until(lambda: site.member.block_storage.get_volume(volume.id).status, lambda status: status == "available")
    site.member.compute.create_volume_attachment(uuid, volume_id=volume.id, delete_on_termination=True)


# cases


# Networks and subnets are remembered for some seconds: whether they are asked for is not the operation's doing.
NOW_AND_THEN = ("call.network GET /v2.0/networks", "call.network GET /v2.0/subnets")
# Inside a cell only base images are downloaded, once for all servers of a host.
BASE_IMAGES = ("call.image GET /v2/images/{image_id}/file",)


def points_of(site: LocalSite, flow: Flow, action: str = "error") -> list[str]:
    """The points that the operation reaches; of one that is given back, those that are only on the way back.

    Of an action that is done to a conductor, those that a conductor reaches while it works on a move.
    """
    seen = _trace(site, flow)
    if flow.spoiled_by is not None:
        before = _trace(site, replace(flow, spoiled_by=None))
        seen = {point: of_conductor for point, of_conductor in seen.items() if point not in before}
    unknown = set(seen) - set(every_point())
    assert not unknown, f"`causeway faults list` does not know {unknown}"
    wanted = [point for point, of_conductor in seen.items() if of_conductor or action not in paused.ACTIONS]
    left_out = NOW_AND_THEN if flow.reach == "cross" else NOW_AND_THEN + BASE_IMAGES
    return [point for point in wanted if not point.startswith(left_out)]


def _trace(site: LocalSite, flow: Flow) -> dict[str, bool]:
    """point -> whether a conductor reaches it for a move."""
    known: dict[Flow, dict[str, bool]] = site.__dict__.setdefault("traces", {})
    if flow not in known:
        (uuid,) = prepare(site, flow, 1)
        seen: dict[str, bool] = {}

        def note(point: str, scope: injector.Scope) -> None:
            of_conductor = scope.move_id is not None and scope.host not in site.hosts
            seen[point] = seen.get(point, False) or of_conductor

        assert injector._active is not None
        site.arm({flow.spoiled_by: "error"} if flow.spoiled_by else {})
        injector._active.on_reach = note
        try:
            ask(site, flow, flow.operation, uuid)
            assert until(lambda: look.is_settled(site, uuid), bool)
        finally:
            injector._active.on_reach = None
        site.disarm()
        _finish(site, flow, [uuid], {uuid: []})
        asked_by_us = ("call.network GET /v2.0/ports.",)
        known[flow] = {
            point: of_conductor
            for point, of_conductor in seen.items()
            if not point.startswith((*BACKGROUND, *asked_by_us))
        }
    return known[flow]


def run_batch(site: Site, flow: Flow, action: str, points: list[str]) -> list[Case]:
    cases = {point: Case(flow, action, point) for point in points}
    servers = prepare(site, flow, len(points))
    rule = RULES[action]
    spoiled: dict[str, Any] = {flow.spoiled_by: "error"} if flow.spoiled_by else {}
    rules = spoiled | {point: rule | {"times": 1} for point in points}
    paused_moves: paused.Paused | None = None
    site.arm((paused.COUNTED if action in paused.ACTIONS else {}) | rules)
    with ThreadPoolExecutor(len(servers), thread_name_prefix="users") as users:
        asked = [users.submit(ask, site, flow, flow.operation, uuid) for uuid in servers]
        if action == "crash":
            assert isinstance(site, ChildSite)
            wait_at_points(site, set(points))
            hits = site.hits()
            site.kill()
            site.disarm()
            site.restart()
        for each in asked:
            each.result()
        if action in paused.ACTIONS:
            assert isinstance(site, RolesSite)
            paused.tell(site, servers)
            wait_at_points(site, set(points))
            hits = [hit for hit in site.hits() if hit["point"] in cases]
            paused_moves = paused.pause(site, hits, paused.COUNTED | spoiled)
            if action == "pause":
                paused.wake(site, paused_moves)
    found: dict[str, list[str]] = {uuid: [] for uuid in servers}
    for uuid in servers:
        if not until(lambda uuid=uuid: look.is_settled(site, uuid), bool):  # type: ignore[misc]
            found[uuid].append(f"not settled: {_unsettled(site, uuid)}")
    if isinstance(site, LocalSite):
        # Who was too slow has learnt of it, too.
        assert until(site.is_idle, bool)
        hits = site.hits()
    if isinstance(site, RolesSite) and paused_moves is not None:
        paused.wake(site, paused_moves)
        for uuid in servers:
            found[uuid] += paused.complaints(site, paused_moves, uuid)
    site.disarm()
    for uuid in servers:
        found[uuid] += look.complaints(site, uuid, mark(uuid))
    _audit(site, found)
    _finish(site, flow, servers, found)
    _audit(site, found)
    by_request = {move.request_id: uuid for uuid in servers for move in journal.of_server(site.api, uuid)}
    by_move = {move.id: uuid for uuid in servers for move in journal.of_server(site.api, uuid)}
    for hit in hits:
        if hit["point"] in cases:
            case = cases[hit["point"]]
            case.reached = True
            uuid = by_move.get(hit["move"]) or by_request.get(hit["request"])
            case.complaints += found[uuid] if uuid else [each for complaints in found.values() for each in complaints]
    unexplained = [each for each in found.values() if each]
    if unexplained and not any(case.complaints for case in cases.values()):
        next(iter(cases.values())).complaints += [complaint for each in unexplained for complaint in each]
    return list(cases.values())


def _audit(site: Site, found: dict[str, list[str]]) -> None:
    # What an earlier batch left is not held against this one.
    known: set[str] = site.__dict__.setdefault("disagreements", set())
    for uuid, disagreements in look.audit(site).items():
        fresh = [each for each in disagreements if each not in known]
        known.update(fresh)
        for each in fresh:
            named = [concerned for concerned in found if concerned == uuid or concerned in each]
            for concerned in named or list(found):
                found[concerned].append(each)


def wait_at_points(site: Site, wanted: set[str]) -> None:
    """Until every point is taken, or nothing has happened for a while."""
    last, since = 0, time.monotonic()
    while time.monotonic() - since < QUIET:
        taken = {hit["point"] for hit in site.hits()} & wanted
        if taken == wanted:
            return
        if len(taken) > last:
            last, since = len(taken), time.monotonic()
        time.sleep(0.02)


def _unsettled(site: Site, uuid: str) -> str:
    move = journal.active_of_server(site.api, uuid)
    return f"{move.recipe} {move.state} {move.error} {move.owner}" if move else "no move, but a task"


def _finish(site: Site, flow: Flow, servers: list[str], found: dict[str, list[str]]) -> None:
    """The servers can be used: what waits is confirmed or reverted, all are deleted, and nothing is left."""
    for number, uuid in enumerate(servers):
        if site.admin.compute.get_server(uuid).status == "VERIFY_RESIZE":
            refusal = ask(site, flow, ("confirm", "revert")[number % 2], uuid)
            if refusal:
                found[uuid].append(f"not to be confirmed or reverted: {refusal}")
            until(lambda uuid=uuid: look.is_settled(site, uuid), bool)  # type: ignore[misc]
            found[uuid] += [f"afterwards, {each}" for each in look.complaints(site, uuid, mark(uuid))]
    for uuid in servers:
        site.admin.compute.delete_server(uuid)
    for uuid in servers:
        there = until(lambda uuid=uuid: look.record(site, uuid), lambda record: record is None, 15)  # type: ignore[misc]
        if there is not None:
            found[uuid].append(f"not deleted: {there.vm_state} {there.task_state}")
        found[uuid] += [f"left after it was deleted: {each}" for each in look.remains(site, uuid)]


# running


def make_site(action: str, directory: Path, driver: str) -> Site:
    if driver == "libvirt":
        return LibvirtSite(directory)
    if action in paused.ACTIONS:
        return RolesSite(directory)
    return ChildSite(directory) if action == "crash" else LocalSite(directory, conductors=2 if action == "hang" else 1)


@contextmanager
def temporary_site(action: str, driver: str = "simulated") -> Iterator[Site]:
    directory = Path(tempfile.mkdtemp(prefix="causeway-matrix-"))
    try:
        with make_site(action, directory, driver) as site:
            yield site
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def all_points(flows: list[Flow], actions: Sequence[str]) -> dict[str, dict[Flow, list[str]]]:
    """action -> operation -> points"""
    with temporary_site("error") as site:
        assert isinstance(site, LocalSite)
        return {action: {flow: points_of(site, flow, action) for flow in flows} for action in actions}


def run(site: Site, action: str, points: dict[Flow, list[str]], tell: Callable[[Case], None]) -> list[Case]:
    """All cases of an action. A point that was not reached (another fault was quicker) is tried again by itself."""
    cases = []
    for flow, wanted in points.items():
        # Points of different parts of the way in a batch: each server comes to one of them.
        size = LIBVIRT_BATCH if isinstance(site, LibvirtSite) else BATCH[action]
        spread = [point for start in range(size) for point in wanted[start::size]]
        left: list[str] = []
        for batch in chunks(spread, size):
            for case in run_batch(site, flow, action, batch):
                if case.reached:
                    cases.append(case)
                    tell(case)
                else:
                    left.append(case.point)
        for point in left:
            cases += run_batch(site, flow, action, [point])
            tell(cases[-1])
    return cases


def on_steps(points: list[str]) -> list[str]:
    """Those before, in and after each step."""
    return [point for point in points if point.startswith(("compute.", *(f"{recipe}." for recipe in RECIPES)))]


def sample(points: dict[Flow, list[str]], count: int, seed: int) -> dict[Flow, list[str]]:
    """``count`` points of each flow, spread over its way; another ``seed`` gives others."""
    chosen = {}
    for flow, wanted in points.items():
        step = max(1, len(wanted) // count)
        first = random.Random(f"{seed} {flow.name}").randrange(step)
        chosen[flow] = wanted[first::step][:count]
    return chosen


def table(cases: list[Case], seconds: dict[str, float]) -> Table:
    shown = Table(
        "Action", "Operation", "Cases", "Recovered", "Lost", "Leaked", "Not reached", title="Matrix of faults"
    )
    for action in ACTIONS:
        of_action = [case for case in cases if case.action == action]
        if not of_action:
            continue
        for operation, reach in product(("resize", "confirm", "revert"), ("cross", "same", "host")):
            group = [each for each in of_action if (each.flow.operation, each.flow.reach) == (operation, reach)]
            if group:
                shown.add_row(action, f"{reach}{'-cell' if reach != 'host' else ''} {operation}", *_counts(group))
        shown.add_row(action, f"all ({seconds[action]:.0f} s)", *_counts(of_action), end_section=True)
    return shown


def _counts(cases: list[Case]) -> list[str]:
    outcomes = [case.outcome for case in cases]
    return [str(len(cases)), *(str(outcomes.count(each)) for each in ("recovered", "lost", "leaked", "not reached"))]


@click.command()
@click.option("--action", "actions", multiple=True, type=click.Choice(ACTIONS), default=ACTIONS)
@click.option("--flow", "wanted_flow", default="", help="Only operations whose name has this in it.")
@click.option("--point", "wanted_point", default="", help="Only points whose name has this in it.")
@click.option("--sample", "count", type=int, help="So many points of each operation.")
@click.option(
    "--driver",
    type=click.Choice(["simulated", "libvirt"]),
    default="simulated",
    help="libvirt: real guests, crashes only.",
)
def main(actions: tuple[str, ...], wanted_flow: str, wanted_point: str, count: int | None, driver: str) -> None:
    """Runs the matrix and prints what came of it; exit status 1 if a server was lost or something leaked."""
    console = Console()
    # Every fault is in the log twice and more; what came of them is in the table.
    logging.basicConfig(level=logging.CRITICAL)
    flows = [flow for flow in FLOWS if wanted_flow in flow.name]
    if why_not() is not None and set(actions) & set(paused.ACTIONS):
        console.print(f"Without {', '.join(paused.ACTIONS)}: {why_not()}", markup=False, highlight=False)
        actions = tuple(action for action in actions if action not in paused.ACTIONS)
    if driver == "libvirt":
        actions, flows = ("crash",), [flow for flow in flows if flow.reach == "cross"]
    points = all_points(flows, actions)
    if driver == "libvirt":
        points = {action: {flow: on_steps(of) for flow, of in found.items()} for action, found in points.items()}
    for action, found in points.items():
        points[action] = {flow: [point for point in of if wanted_point in point] for flow, of in found.items()}
        if count is not None:
            points[action] = sample(points[action], count, 0)
    cases: list[Case] = []
    seconds: dict[str, float] = {}

    def tell(case: Case) -> None:
        if case.outcome != "recovered":
            console.print(
                f"{case.outcome}: {case.action} {case.flow.name} {case.point}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            for complaint in case.complaints[:6]:
                console.print(f"    {complaint}", markup=False, highlight=False, soft_wrap=True)

    for action in actions:
        began = time.monotonic()
        with temporary_site(action, driver) as site:
            cases += run(site, action, points[action], tell)
        seconds[action] = time.monotonic() - began
    console.print(table(cases, seconds))
    sys.exit(0 if all(case.outcome == "recovered" for case in cases) else 1)


if __name__ == "__main__":
    main()
