"""The matrix of operations: every point on the way of each, and what becomes of the server. See `moves.matrix` for moves.

The points are not written down here: an operation is carried out once undisturbed, and those that it reaches are its cases. Each
case has a server of its own; a batch of them shares one crash, see `batches`. Then the process is started again, nobody
lends a hand, and `judge` looks from outside at what is there: on the hosts, in Placement, and in the services around.

What came of a case is one word. *Forward*: the operation took effect. *Undone*: it did not, the server is as it was before, or in
ERROR where Nova does that, and the same can be asked again and works. In both nothing is orphaned when the server is
deleted. Else what is wrong, the worst of it: *stuck* (a task, a volume or a server with which nothing can be done any more),
*lost* (those who know of the server disagree, or what was accepted is neither done nor denied), *leaked* (something is left).

Actions are those of `moves.matrix`: ``crash``; ``error``: the call or step fails once there, and when all has settled the
process is started again; ``service-killed``: services around are killed while they work on requests of the operations;
``hang``, ``pause`` and ``long-pause`` for operations of the journal, at the points that a conductor reaches while it works on
them, because only those are taken over. What can't be evacuated without a dead host gets one: see `Operation`.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from causeway.faults import injector
from causeway.faults.points import every_point
from tests.faults.answers import call
from tests.faults.cases import Case
from tests.faults.clouds import killed_services, paused
from tests.faults.clouds.roles_site import RolesSite, why_not
from tests.faults.clouds.site import ChildSite, LocalSite, Site, until
from tests.faults.moves.matrix import SLOW
from tests.faults.operations.batches import AFTERWARDS, OperationCase, is_settled, run_batch, wait_for_end
from tests.faults.operations.subjects import PATIENCE, Subject, create, wait_for
from tests.faults.operations.table import OPERATIONS, Operation
from tests.faults.reporting import Report, Wanted

# Those that are done to a conductor.
TAKEOVERS = ("hang", "pause", "long-pause")
ACTIONS = ("crash", "error", killed_services.ACTION, *TAKEOVERS)
# Cases at once; who waits for a request that is held must not have lost patience before the last one is.
BATCH, BATCH_OF_HELD = 12, 6
# What is reached from time to time, whatever is done: hosts report, and what is remembered for a while is asked for anew.
BACKGROUND = (
    "rpc.cell_conductor.report_host",
    "call.network GET /v2.0/networks",
    "call.network GET /v2.0/subnets",
    "call.network GET /v2.0/extensions",
)
MESSAGES = (".external_events.request", ".external_instance_events.request")
# Of two conductors either may be called for an attach, or take the second of two operations.
TRIES = 8
# Each process remembers the answer for some seconds, so a case in which the service is killed may not ask for it.
REMEMBERED = "call.network GET /v2.0/security-groups"
# Longer than a batch takes: whoever waits for somebody who stands at a point waits longer than the crash takes to come.
NO_TIMEOUT = 120


@contextmanager
def temporary_site(action: str, *, offloads: bool, stores: str = "") -> Iterator[Site]:
    directory = Path(tempfile.mkdtemp(prefix="causeway-operations-"))
    try:
        site = make_site(action, directory, offloads=offloads)
        with site.share_storage(stores) if stores else site:
            warm(site)
            yield site
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def make_site(action: str, directory: Path, *, offloads: bool = True) -> Site:
    """``action`` "": nothing happens to it but what is asked for."""
    site: Site
    if action in (*paused.ACTIONS, killed_services.ACTION):
        site = RolesSite(directory)
    elif action in ("", "hang"):
        site = LocalSite(directory, conductors=2 if action else 1)
    else:
        site = ChildSite(directory)
    site.options["DEFAULT"]["shelved_offload_time"] = 0 if offloads else -1
    if action in ("", "crash"):
        site.options["DEFAULT"]["rpc_response_timeout"] = NO_TIMEOUT
    return site


def warm(site: Site) -> None:
    """Each host has the base image: it is downloaded once only, for all servers."""
    for host in site.hosts:
        subject = Subject()
        assert create(site, subject, host=host, flavor="any.small").is_accepted
        wait_for(site, subject, "ACTIVE")
        call(site, "DELETE", f"/servers/{subject.uuid}")
        wait_for_end(site, subject)


def points_of(site: LocalSite, operation: Operation) -> dict[str, bool]:
    """The points that the operation reaches when nothing goes wrong, in their order -> whether a conductor does for it."""
    subject = Subject()
    operation.prepare(site, subject)
    # The last steps of what it was prepared by are not its own.
    assert subject.uuid is None or until(lambda: is_settled(site, subject.uuid), bool, PATIENCE)
    if operation.kills_host is not None:
        site.kill_host(operation.kills_host)
    seen: dict[str, bool] = {}
    assert injector._active is not None
    site.disarm()

    def note(point: str, scope: injector.Scope) -> None:
        if SLOW in point:
            return
        of_conductor = scope.operation_id is not None and scope.host not in site.hosts
        seen[point] = seen.get(point, False) or of_conductor

    injector._active.on_reach = note
    try:
        answer = operation.ask(site, subject)
        assert answer.is_accepted, answer
        assert until(lambda: is_settled(site, subject.uuid), bool, PATIENCE)
        time.sleep(AFTERWARDS)
    finally:
        injector._active.on_reach = None
    if operation.kills_host is not None:
        site.revive_host(operation.kills_host)
    if subject.uuid is not None:
        call(site, "DELETE", f"/servers/{subject.uuid}")
        wait_for_end(site, subject)
    unknown = set(seen) - set(every_point())
    assert not unknown, f"`causeway faults list` does not know {unknown}"
    return {
        point: of_conductor
        for point, of_conductor in seen.items()
        if not point.startswith(BACKGROUND) and (not operation.only or point.startswith(operation.only))
    }


def all_points(operations: list[Operation], *, stores: str = "") -> dict[Operation, dict[str, bool]]:
    found: dict[Operation, dict[str, bool]] = {}
    for offloads in (True, False):
        wanted = [operation for operation in operations if operation.offloads is offloads]
        if wanted:
            with temporary_site("", offloads=offloads, stores=stores) as site:
                assert isinstance(site, LocalSite)
                found |= {operation: points_of(site, operation) for operation in wanted}
    return {operation: found[operation] for operation in operations}


def points_for(action: str, found: dict[str, bool]) -> list[str]:
    """Those at which it can be done."""
    if action == killed_services.ACTION:
        return [point for point in killed_services.points(list(found)) if not point.startswith(REMEMBERED)]
    return [point for point, of_conductor in found.items() if of_conductor or action not in TAKEOVERS]


def run(
    points: dict[Operation, list[str]],
    action: str,
    report: Callable[[OperationCase], None],
    *,
    stores: str = "",
) -> None:
    """All cases of an action. Each operation has a cloud of its own: what is orphaned of one is in no other's way."""
    for operation, wanted in points.items():
        if not wanted:
            continue
        with temporary_site(action, offloads=operation.offloads, stores=stores) as site:
            for case in run_on(site, [Case(operation, action, point) for point in wanted]):
                report(case)


def run_on(site: Site, cases: list[OperationCase]) -> Iterator[OperationCase]:
    """Runs those again alone that did not come to their point, and all of a batch in which it is unclear who left something."""
    for batch in batches_of(cases):
        is_clear = run_batch(site, batch)
        for case in batch:
            if (is_clear and case.reached) or len(batch) == 1:
                yield case
                continue
            yield _alone(site, case)


def _alone(site: Site, case: OperationCase, more_tries: int = TRIES) -> OperationCase:
    """Runs a case by itself: several times if the conductor that is to be paused must be the one that works on it."""
    alone = Case(case.flow, case.action, case.point)
    run_batch(site, [alone])
    if alone.reached or case.action not in paused.ACTIONS or not more_tries:
        return alone
    assert isinstance(site, RolesSite)
    # Not each time: a try may take an even number of turns, or an odd one, and one of them would always come back to the other.
    if more_tries % 2 == 0:
        site.pass_turn()
    return _alone(site, alone, more_tries - 1)


def batches_of(cases: list[OperationCase]) -> list[list[OperationCase]]:
    """In each are points of different parts of the way, and none of them twice.

    The network service's messages come when they come: who stands elsewhere may be the one that reaches their points, and whose
    operation then continues would take another's fault. So each of these has a batch of its own; and so has who stands in the
    middle of a write of Placement.
    """
    alone = [[case] for case in cases if _is_alone(case)]
    # The last points of the way first: whoever stands at an earlier one may have a lock that others need to get further.
    cases = [case for case in reversed(cases) if not _is_alone(case)]
    dead = dict.fromkeys(case.flow.kills_host for case in cases)
    return [
        batch for host in dead for batch in _spread([case for case in cases if case.flow.kills_host == host])
    ] + alone


def _is_alone(case: OperationCase) -> bool:
    return case.point.endswith(MESSAGES) or killed_services.is_half(case.point)


def _spread(cases: list[OperationCase]) -> list[list[OperationCase]]:
    size = BATCH_OF_HELD if cases and cases[0].action == killed_services.ACTION else BATCH
    batches: list[list[OperationCase]] = [[] for _ in range(-(-len(cases) // size))]
    for number, case in enumerate(cases):
        # Beginning with another one each time, so that neighbours are apart.
        turn = number % len(batches)
        for batch in batches[turn:] + batches[:turn]:
            if len(batch) < size and case.point not in {other.point for other in batch}:
                batch.append(case)
                break
        else:
            batches.append([case])
    return batches


def run_and_report(console: Console, wanted: Wanted) -> int:
    """Runs what is wanted of the actions that there are for operations, and returns the exit status."""
    operations = [operation for operation in OPERATIONS if wanted.flow in operation.name]
    found = all_points(operations, stores=wanted.stores)
    report = Report(console, wanted, OPERATIONS)
    for action in [action for action in ACTIONS if action in wanted.actions]:
        if action in (*paused.ACTIONS, killed_services.ACTION) and why_not() is not None:
            report.say(f"Without {action}: {why_not()}")
            continue
        points = {operation: points_for(action, of_it) for operation, of_it in found.items()}
        points = {operation: [each for each in of_it if wanted.point in each] for operation, of_it in points.items()}
        if (count := wanted.count) is not None:
            points = {operation: of_it[:: max(1, len(of_it) // count)][:count] for operation, of_it in points.items()}
        run(report.progress.begin(action, points), action, report.add, stores=wanted.stores)
        report.progress.end()
    return report.conclude()
