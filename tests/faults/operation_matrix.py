"""The matrix of operations: every point on the way of each, and what becomes of the server. See `matrix` for moves.

The points are not written down here: an operation is carried out once undisturbed, and those that it reaches are its cases. Each
case has a server of its own; a batch of them shares one crash, see `operation_batches`. Then the process is started again, nobody
lends a hand, and `judge` looks from outside at what is there: on the hosts, in Placement, and in the services around.

What came of a case is one word. *Forward*: the operation took effect. *Undone*: it did not, the server is as it was before, or in
ERROR where the field does that, and the same can be asked again and works. In both nothing is left over when the server is
deleted. Else what is wrong, the worst of it: *stuck* (a task, a volume or a server with which nothing can be done any more),
*lost* (those who know of the server disagree, or what was accepted is neither done nor denied), *leaked* (something is left).

Actions: ``crash``, and ``error``: the call or step fails once there, and when all has settled the process is started again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from causeway.faults import injector
from causeway.faults.points import every_point

from .operation_batches import AFTERWARDS, is_settled, run_batch, wait_for_end
from .operation_cases import OperationCase, as_json, table
from .operations import OPERATIONS, PATIENCE, Operation, Subject, wait_for
from .site import ChildSite, LocalSite, Site, until
from .users import call

ACTIONS = ("crash", "error")
# Cases at once.
BATCH = 12
# What is reached from time to time, whatever is done: hosts report, and what is remembered for a while is asked for anew.
BACKGROUND = (
    "rpc.cell_conductor.report_host",
    "call.network GET /v2.0/networks",
    "call.network GET /v2.0/subnets",
    "call.network GET /v2.0/extensions",
)
MESSAGES = (".external_events.request", ".external_instance_events.request")
# Longer than a batch takes: whoever waits for somebody who stands at a point does not give up before the crash.
NO_TIMEOUT = 120


@contextmanager
def temporary_site(kind: type[ChildSite] | type[LocalSite], *, offloads: bool, crashes: bool = True) -> Iterator[Site]:
    directory = Path(tempfile.mkdtemp(prefix="causeway-operations-"))
    try:
        with make_site(kind, directory, offloads=offloads, crashes=crashes) as site:
            warm(site)
            yield site
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def make_site(
    kind: type[ChildSite] | type[LocalSite], directory: Path, *, offloads: bool = True, crashes: bool = True
) -> Site:
    site = kind(directory)
    site.options["DEFAULT"]["shelved_offload_time"] = 0 if offloads else -1
    if crashes:
        site.options["DEFAULT"]["rpc_response_timeout"] = NO_TIMEOUT
    return site


def warm(site: Site) -> None:
    """Each host that is used has the base image: it is downloaded once only, for all servers."""
    for flavor in ("host1.small", "host2.medium"):
        server = site.member.compute.create_server(
            name="first", flavor_id=flavor, image_id=site.image_id, networks=[{"uuid": site.network_id}]
        )
        subject = Subject(uuid=server.id)
        wait_for(site, subject, "ACTIVE")
        call(site, "DELETE", f"/servers/{subject.uuid}")
        wait_for_end(site, subject)


def points_of(site: LocalSite, operation: Operation) -> list[str]:
    """The points that the operation reaches when nothing goes wrong, in their order."""
    subject = Subject()
    operation.prepare(site, subject)
    seen: dict[str, None] = {}
    assert injector._active is not None
    site.disarm()
    injector._active.on_reach = lambda point, _scope: seen.setdefault(point)
    try:
        answer = operation.ask(site, subject)
        assert answer.is_accepted, answer
        assert until(lambda: is_settled(site, subject.uuid), bool, PATIENCE)
        time.sleep(AFTERWARDS)
    finally:
        injector._active.on_reach = None
    if subject.uuid is not None:
        call(site, "DELETE", f"/servers/{subject.uuid}")
        wait_for_end(site, subject)
    unknown = set(seen) - set(every_point())
    assert not unknown, f"`causeway faults list` does not know {unknown}"
    return [point for point in seen if not point.startswith(BACKGROUND)]


def all_points(operations: list[Operation]) -> dict[Operation, list[str]]:
    found: dict[Operation, list[str]] = {}
    for offloads in (True, False):
        wanted = [operation for operation in operations if operation.offloads is offloads]
        if wanted:
            with temporary_site(LocalSite, offloads=offloads) as site:
                assert isinstance(site, LocalSite)
                found |= {operation: points_of(site, operation) for operation in wanted}
    return {operation: found[operation] for operation in operations}


def run(points: dict[Operation, list[str]], action: str, tell: Callable[[OperationCase], None]) -> None:
    """All cases of an action. Each operation has a cloud of its own: what is left over of one is in no other's way."""
    for operation, wanted in points.items():
        if not wanted:
            continue
        with temporary_site(ChildSite, offloads=operation.offloads, crashes=action == "crash") as site:
            assert isinstance(site, ChildSite)
            for case in run_on(site, [OperationCase(operation, action, point) for point in wanted]):
                tell(case)


def run_on(site: ChildSite, cases: list[OperationCase]) -> Iterator[OperationCase]:
    """Runs those again alone that did not come to their point, and all of a batch in which it is unclear who left something."""
    for batch in batches_of(cases):
        is_clear = run_batch(site, batch)
        for case in batch:
            if (is_clear and case.reached) or len(batch) == 1:
                yield case
                continue
            alone = OperationCase(case.operation, case.action, case.point)
            run_batch(site, [alone])
            yield alone


def batches_of(cases: list[OperationCase]) -> list[list[OperationCase]]:
    """In each are points of different parts of the way, and none of them twice.

    The network service's messages come when they come: who stands elsewhere may be the one that reaches their points, and whose
    operation then goes on would take another's fault. So each of these has a batch of its own.
    """
    alone = [[case] for case in cases if case.point.endswith(MESSAGES)]
    cases = [case for case in cases if not case.point.endswith(MESSAGES)]
    return _spread(cases) + alone


def _spread(cases: list[OperationCase]) -> list[list[OperationCase]]:
    batches: list[list[OperationCase]] = [[] for _ in range(-(-len(cases) // BATCH))]
    for number, case in enumerate(cases):
        # Beginning with another one each time, so that neighbours are apart.
        turn = number % len(batches)
        for batch in batches[turn:] + batches[:turn]:
            if len(batch) < BATCH and case.point not in {other.point for other in batch}:
                batch.append(case)
                break
        else:
            batches.append([case])
    return batches


def run_and_tell(
    console: Console,
    actions: Sequence[str],
    wanted_operation: str,
    wanted_point: str,
    count: int | None,
    file: Path | None,
) -> int:
    """Prints each case that is not well, and the table; 1 if there are such cases. ``count`` points of each operation."""
    operations = [operation for operation in OPERATIONS if wanted_operation in operation.name]
    points = {
        operation: [point for point in found if wanted_point in point]
        for operation, found in all_points(operations).items()
    }
    if count is not None:
        points = {operation: found[:: max(1, len(found) // count)][:count] for operation, found in points.items()}
    cases: list[OperationCase] = []

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    def tell(case: OperationCase) -> None:
        cases.append(case)
        if file is not None:
            # A run takes long: what is known is there if it is broken off.
            file.write_text(json.dumps(as_json(cases), indent=1))
        if not case.is_well:
            say(f"{case.outcome}: {case.action} {case.name} ({case.end})")
            for complaint in case.complaints:
                say(f"    {complaint.kind}: {complaint.text}")

    for action in [action for action in ACTIONS if action in actions]:
        run(points, action, tell)
    console.print(table(cases))
    return 0 if all(case.is_well for case in cases) else 1
