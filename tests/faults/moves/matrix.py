"""The matrix of faults: every point on the way of every operation, and what becomes of the server.

For resize, confirm and revert, and for drains that ask for them; across cells, inside one, and on one host; image- and
volume-backed, with ephemeral disks, and with a NUMA topology; each as it succeeds and (``rolled-back``) as its end is refused and
everything before it undone. The points are not written down here: an operation is run once, and those that it reaches are its
cases. So a new step is covered when it is added.

A *batch* runs several cases at once on a server each: the first server to reach a point takes its fault. After it nobody
lends a hand: everything must settle by itself, with each server in exactly one cell, usable, its data intact, and nothing
orphaned; what waits for confirm is confirmed or reverted, and all are deleted, which leaves nothing.

What came of a case is reported twice. *Recovered*, *lost* or *leaked*: is the server whole, and is nothing orphaned. *Forward*,
*rolled back* or *refused*: did the move end where its user wanted it, was it undone, or were they refused at once (``undone``:
rolled back in a flow whose end refuses, where that is right). The last line has the share of accepted moves that went forward.

Actions:

- ``error``: the step fails there, once.
- ``crash``: a cloud in a child process gets SIGKILL while a move of each server stands at its point; it is started again.
- ``cancel``: as ``crash``, and moves are cancelled before it is started again: what a step did, but had not noted yet, is undone.
- ``power-cut``: as ``crash``, and everything is lost that the process had not synced, as strace saw it. See
  `clouds.unsynced`.
- ``hang``: the move stops there for longer than its lease, another conductor takes it over, then the first wakes.
- ``service-killed``: Identity, Image, Network, Block Storage and Placement get SIGKILL while each works on a request: before it
  was carried out, when nobody knows yet that it was, or (Placement) half way. They are there again two seconds later. See
  `clouds.killed_services`.
- ``dead-source``, ``dead-target``: while moves stand before or behind a step (or before they are asked for), that host's compute
  is stopped for good and forced down. All must settle without it; then it comes back, and is cleaned.
- ``target-lost``, ``source-lost``: the guest or disks of the host that is to keep the server are gone before confirm or revert:
  nothing may be destroyed, and the other way must be open still. See `accidents`.
- ``pause``, ``long-pause``, ``longest-pause``: two conductors are processes over RabbitMQ; one gets SIGSTOP while moves stand
  at the points that it reaches. It is woken as soon as the other has taken them over; when the other is done with them; or when
  users have confirmed, reverted or deleted the servers since. See `clouds.paused`.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from causeway.faults import injector
from causeway.faults.points import every_point
from causeway.moves.recipes import WITH_GUEST
from tests.faults.cases import Case
from tests.faults.clouds import killed_services, paused
from tests.faults.clouds.libvirt_site import LibvirtSite
from tests.faults.clouds.power_site import PowerSite
from tests.faults.clouds.roles_site import RolesSite, why_not
from tests.faults.clouds.site import ChildSite, LocalSite, Site, chunks, until
from tests.faults.moves import accidents, look, real_accidents
from tests.faults.moves.batches import finish, run_batch
from tests.faults.moves.flows import FLOWS, Flow
from tests.faults.moves.users import ask, prepare
from tests.faults.reporting import Report, Wanted

ACTIONS = ("error", "crash", "cancel", "power-cut", "hang", *paused.ACTIONS, killed_services.ACTION, *accidents.ACTIONS)
# Of real guests.
REAL_ACCIDENTS = tuple(real_accidents.ACCIDENTS)
EVERY_ACTION = (*ACTIONS, *REAL_ACCIDENTS)
# Servers at once.
BATCH = {
    "error": 8,
    "crash": 20,
    "cancel": 20,
    "power-cut": 20,
    "hang": 16,
    "pause": 12,
    "long-pause": 12,
    "longest-pause": 12,
    killed_services.ACTION: 8,
    **accidents.BATCH,
}
# Of points that were not reached in a batch there are so many times fewer in the next one.
SMALLER = 4
# Real guests need their time and memory.
LIBVIRT_BATCH = 4
# What is done to drains.
OF_DRAINS = ("error", "crash", "hang")
# What a call that took more than a second is answered with: on a slow machine it is any of them.
SLOW = ".late_answer."
# What comes from time to time, whatever moves do.
BACKGROUND = ("rpc.cell_conductor.report_host",)


# These are remembered for some seconds: whether they are asked for is not the operation's doing.
NOW_AND_THEN = tuple(f"call.network GET /v2.0/{what}" for what in ("networks", "subnets", "security-groups"))
# Hosts that reach one another download only base images, once for all servers of a host.
BASE_IMAGES = ("call.image GET /v2/images/{image_id}/file",)


def points_of(site: LocalSite, flow: Flow, action: str = "error") -> list[str]:
    """The points that the operation reaches; of one that is rolled back, or meets an obstacle, those that are only on that way.

    Of an action that is done to a conductor, those that a conductor reaches while it works on a move. Accidents have their own.
    """
    if flow.is_drain and action not in OF_DRAINS:
        return []
    if action in accidents.ACTIONS:
        return accidents.points_of(flow, action)
    if action == "cancel" and not (flow.is_plain and flow.operation == "resize"):
        return []
    seen = _trace(site, flow)
    if not flow.is_plain:
        before = _trace(
            site, replace(flow, spoiled_by=None, is_cut_off=flow.is_cut_off and flow.spoiled_by is not None)
        )
        seen = {point: of_conductor for point, of_conductor in seen.items() if point not in before}
    unknown = set(seen) - set(every_point())
    assert not unknown, f"`causeway faults list` does not know {unknown}"
    wanted = [point for point, of_conductor in seen.items() if of_conductor or action not in paused.ACTIONS]
    if action == killed_services.ACTION:
        wanted = killed_services.points(wanted)
    if flow.is_drain:
        # All else is reached in the same way by what users ask for.
        wanted = [point for point in wanted if point.startswith(("drain.", *flow.prefixes))]
    left_out = NOW_AND_THEN if flow.is_cut_off else NOW_AND_THEN + BASE_IMAGES
    return [point for point in wanted if not point.startswith(left_out)]


def _trace(site: LocalSite, flow: Flow) -> dict[str, bool]:
    """point -> whether a conductor reaches it for a move."""
    known: dict[Flow, dict[str, bool]] = site.__dict__.setdefault("traces", {})
    if flow not in known:
        (uuid,) = prepare(site, flow, 1)
        seen: dict[str, bool] = {}

        def note(point: str, scope: injector.Scope) -> None:
            if SLOW in point:
                return
            of_conductor = scope.operation_id is not None and scope.host not in site.hosts
            seen[point] = seen.get(point, False) or of_conductor

        assert injector._active is not None
        site.arm(flow.rules)
        injector._active.on_reach = note
        try:
            ask(site, flow, flow.operation, uuid)
            assert until(lambda: look.is_settled(site, uuid), bool)
        finally:
            injector._active.on_reach = None
        site.disarm()
        finish(site, flow, [uuid], {uuid: []})
        asked_by_us = ("call.network GET /v2.0/ports.",)
        known[flow] = {
            point: of_conductor
            for point, of_conductor in seen.items()
            if not point.startswith((*BACKGROUND, *asked_by_us))
        }
    return known[flow]


# running


def make_site(action: str, directory: Path, driver: str) -> Site:
    if driver == "libvirt":
        return LibvirtSite(directory)
    if action in (*paused.ACTIONS, killed_services.ACTION):
        return RolesSite(directory)
    if action == "power-cut":
        return PowerSite(directory)
    return (
        ChildSite(directory)
        if action in ("crash", "cancel")
        else LocalSite(directory, conductors=2 if action == "hang" else 1)
    )


@contextmanager
def temporary_site(action: str, driver: str = "simulated", *, stores: str = "") -> Iterator[Site]:
    directory = Path(tempfile.mkdtemp(prefix="causeway-matrix-"))
    try:
        site = make_site(action, directory, driver)
        with site.share_storage(stores) if stores else site:
            yield site
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def all_points(flows: list[Flow], actions: Sequence[str], *, stores: str = "") -> dict[str, dict[Flow, list[str]]]:
    """action -> operation -> points"""
    with temporary_site("error", stores=stores) as site:
        assert isinstance(site, LocalSite)
        return {action: {flow: points_of(site, flow, action) for flow in flows} for action in actions}


def run_any(site: Site, flow: Flow, action: str, points: list[str]) -> list[Case[Flow]]:
    if action in accidents.ACTIONS:
        assert isinstance(site, LocalSite)
        return accidents.run_batch(site, flow, action, points)
    return run_batch(site, flow, action, points)


def run(
    site: Site, action: str, points: dict[Flow, list[str]], report: Callable[[Case[Flow]], None]
) -> list[Case[Flow]]:
    """All cases of an action."""
    cases = []
    size = LIBVIRT_BATCH if isinstance(site, LibvirtSite) else BATCH[action]
    for flow, wanted in points.items():
        for case in _run_in_batches(site, flow, action, wanted, size):
            cases.append(case)
            report(case)
    return cases


def _run_in_batches(site: Site, flow: Flow, action: str, points: list[str], size: int) -> Iterator[Case[Flow]]:
    """A point that was not reached (another fault was quicker) is tried again in a smaller batch, and by itself in the end."""
    # Points of different parts of the way in a batch: each server comes to one of them.
    alone = [point for point in points if killed_services.is_half(point)]
    together = [point for point in points if point not in alone]
    spread = [point for start in range(size) for point in together[start::size]]
    left: list[str] = []
    for batch in [*chunks(spread, size), *chunks(alone, 1)]:
        for case in run_any(site, flow, action, batch):
            if case.reached or size == 1:
                yield case
            else:
                left.append(case.point)
    if left:
        yield from _run_in_batches(site, flow, action, left, max(1, size // SMALLER))


def on_steps(points: list[str]) -> list[str]:
    """Those before, in and after each step."""
    return [point for point in points if point.startswith(("compute.", *(f"{recipe}." for recipe in WITH_GUEST)))]


def sample(points: dict[Flow, list[str]], count: int, seed: int) -> dict[Flow, list[str]]:
    """``count`` points of each flow, spread over its way; another ``seed`` gives others."""
    chosen = {}
    for flow, wanted in points.items():
        step = max(1, len(wanted) // count)
        first = random.Random(f"{seed} {flow.name}").randrange(step)
        chosen[flow] = wanted[first::step][:count]
    return chosen


def run_and_report(console: Console, wanted: Wanted) -> int:
    """Runs what is wanted, and returns the exit status."""
    report = Report(console, wanted, FLOWS)
    flows = [flow for flow in FLOWS if wanted.flow in flow.name]
    actions = [action for action in ACTIONS if action in wanted.actions]
    real = [action for action in REAL_ACCIDENTS if action in wanted.actions] if wanted.driver == "libvirt" else []
    if wanted.driver == "libvirt":
        flows = [flow for flow in flows if flow.reach == "cross" and not flow.is_drain]
        actions = [action for action in actions if action == "crash"]
    for missing, needing in (
        (why_not(), (*paused.ACTIONS, killed_services.ACTION)),
        (_without_strace(), ("power-cut",)),
    ):
        if missing is not None and set(actions) & set(needing):
            report.say(f"Without {', '.join(needing)}: {missing}")
            actions = [action for action in actions if action not in needing]
    for action, points in all_points(flows, actions, stores=wanted.stores).items():
        chosen = {flow: [point for point in of if wanted.point in point] for flow, of in points.items()}
        if wanted.driver == "libvirt":
            chosen = {flow: on_steps(of) for flow, of in chosen.items()}
        if wanted.count is not None:
            chosen = sample(chosen, wanted.count, 0)
        left = report.progress.begin(action, chosen)
        if any(left.values()):
            with temporary_site(action, wanted.driver, stores=wanted.stores) as site:
                run(site, action, left, report.add)
        report.progress.end()
    if real:
        report.progress.seconds |= real_accidents.run_all(wanted.flow, wanted.point, real, report.add)
    return report.conclude()


def _without_strace() -> str | None:
    return None if shutil.which("strace") is not None else "there is no strace"
