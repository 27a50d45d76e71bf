"""Faults of real parts: what is struck, when, for how long; and what must be true when everything has settled.

``python -m tests.integration.real_services.faults_of_parts [--around devcloud] [--database mariadb] [WORD...]`` runs the rows
whose names contain one of the words, and prints the table.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openstack
from rich.console import Console
from rich.table import Table

from causeway import errors
from causeway.store.api import journal
from tests.functional.processes.deployment import Deployment
from tests.functional.processes.own_process import until
from tests.integration.real_services.audits import audit
from tests.integration.real_services.sites import Site, site_with_devcloud, site_with_services
from tests.integration.real_services.strikes import AWAY, CUT, Away, CutOff, Kill, Scene, ServiceDies, Strike

# What a fault point holds the move for: the fault strikes meanwhile.
HOLD = 2
# Seconds until everything must have settled after the part is back.
PATIENCE = 180
# Bytes of a disk that has to go up and down whole: many of the pieces in which it is sent.
DISK = 24 << 20


@dataclass(frozen=True)
class Moment:
    """When a move is struck: it is held at a fault point meanwhile."""

    name: str
    point: str
    #: a disk that goes whole, not only what differs from its image
    whole_disk: bool = False


@dataclass(frozen=True)
class Row:
    fault: str
    moment: Moment
    strike: Strike
    #: only beside the real services
    real: bool = False

    @property
    def name(self) -> str:
        return f"{self.fault}, {self.moment.name}"


@dataclass
class Result:
    """What came of a row: ``forward`` is VERIFY_RESIZE at the target, else the server is back where it was."""

    row: Row
    database: str
    forward: bool
    #: from the fault on
    seconds: float


CHOOSES = Moment("while the target is chosen", "resize.SelectDestination.do.before")
STOPS = Moment("while the guest leaves the source", "compute.prep_snapshot_based_resize_at_source.before")
GONE = Moment("when the guest is off", "compute.prep_snapshot_based_resize_at_source.in")
UPLOAD = Moment("in the middle of the upload", "disk.upload.in", whole_disk=True)
DOWNLOAD = Moment("in the middle of the download", "disk.download.in", whole_disk=True)
COMES_UP = Moment("while the guest comes up at the target", "compute.finish_snapshot_based_resize_at_dest.before")
IS_UP = Moment("when the guest is up and nobody knows", "compute.finish_snapshot_based_resize_at_dest.after")
BEFORE = Moment("before the switch to the target cell", "resize.SwitchInstanceMapping.do.before")
SWITCHED = Moment("after the switch to the target cell", "resize.ShowTarget.do.before")
BEHIND = Moment("when only the source's record is left to hide", "resize.ShowTarget.do.before")

API, SCHEDULER = Kill(lambda _: "api"), Kill(lambda _: "scheduler")
DRIVER, OTHER = Kill(lambda scene: scene.conductor), Kill(lambda scene: scene.other_conductor)
SOURCE_CELL = Kill(lambda scene: scene.conductor_of(scene.source))
TARGET_CELL = Kill(lambda scene: scene.conductor_of(scene.target))
SOURCE, TARGET = Kill(lambda scene: scene.source), Kill(lambda scene: scene.target)
QUEUE = Away(lambda site: site.broker, AWAY)
DATABASE, DATABASE_RESTART = Away(lambda site: site.database, AWAY), Away(lambda site: site.database, 0)
GLANCE = ServiceDies("glance", 5)
SOURCE_CUT, TARGET_CUT = CutOff(lambda scene: scene.source), CutOff(lambda scene: scene.target)

ROWS = (
    Row("kill -9 of the API", STOPS, API),
    Row("kill -9 of the scheduler", CHOOSES, SCHEDULER),
    Row("kill -9 of the super conductor that has the move", CHOOSES, DRIVER),
    Row("kill -9 of the super conductor that has the move", STOPS, DRIVER),
    Row("kill -9 of the super conductor that has the move", IS_UP, DRIVER),
    Row("kill -9 of the super conductor that has the move", BEHIND, DRIVER),
    Row("kill -9 of the other super conductor", STOPS, OTHER),
    Row("kill -9 of the source cell's conductor", UPLOAD, SOURCE_CELL),
    Row("kill -9 of the target cell's conductor", COMES_UP, TARGET_CELL),
    Row("kill -9 of the source's compute", GONE, SOURCE),
    Row("kill -9 of the source's compute", UPLOAD, SOURCE),
    Row("kill -9 of the target's compute", COMES_UP, TARGET),
    Row("kill -9 of the target's compute", IS_UP, TARGET),
    Row("RabbitMQ unreachable for 20 s", STOPS, QUEUE),
    Row("RabbitMQ unreachable for 20 s", IS_UP, QUEUE),
    Row("RabbitMQ unreachable for 20 s", BEHIND, QUEUE),
    Row("the database restarted", STOPS, DATABASE_RESTART),
    Row("the database unreachable for 20 s", STOPS, DATABASE),
    Row("the database unreachable for 20 s", BEFORE, DATABASE),
    Row("the database unreachable for 20 s", SWITCHED, DATABASE),
    Row("Glance dies, back after 5 s", UPLOAD, GLANCE),
    Row("Glance dies, back after 5 s", DOWNLOAD, GLANCE),
    Row(f"Keystone unreachable for {AWAY} s", STOPS, ServiceDies("keystone", AWAY), real=True),
    Row(f"Neutron unreachable for {AWAY} s", COMES_UP, ServiceDies("neutron", AWAY), real=True),
    Row(f"Cinder unreachable for {AWAY} s", STOPS, ServiceDies("cinder", AWAY), real=True),
    Row(f"Placement unreachable for {AWAY} s", CHOOSES, ServiceDies("placement", AWAY), real=True),
    Row(f"the source host cut off for {CUT} s", STOPS, SOURCE_CUT),
    Row(f"the target host cut off for {CUT} s", COMES_UP, TARGET_CUT),
)

#: what came of all rows that were run
results: list[Result] = []


def rows(words: list[str], *, real: bool) -> list[Row]:
    """Those whose names contain one of the words."""
    found = [row for row in ROWS if real or not row.real]
    return [row for row in found if not words or any(word in row.name for word in words)]


def run(site: Site, row: Row) -> Result:
    """Raises AssertionError if anything is not as it must be when everything has settled."""
    cloud = site.cloud
    server = with_whole_disk(cloud) if row.moment.whole_disk else cloud.boot()
    source = cloud.show(server).compute_host
    scene = Scene(site, server, source, other_cell(cloud, source))
    row.strike.prepare(scene)
    try:
        result = _struck(scene, row)
    finally:
        cloud.fault("none", delay=0)
        row.strike.clean(scene)
    moves_once_more(scene)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, wait=60)
    results.append(result)
    return result


def _struck(scene: Scene, row: Row) -> Result:
    cloud = scene.cloud
    cloud.fault(row.moment.point, delay=HOLD)
    until(lambda: asked(scene), bool, "the move to be accepted")
    hit = cloud.hit(row.moment.point)
    scene.conductor = journal.get(cloud.api_database, hit["move"]).owner_host or ""
    began = time.monotonic()
    row.strike(scene)
    found = settled(scene)
    seconds = time.monotonic() - began
    assert found.status in ("VERIFY_RESIZE", "ACTIVE"), f"{found.status}: {found.fault}"
    forward = found.status == "VERIFY_RESIZE"
    where = scene.target if forward else scene.source
    assert cloud.running_on(scene.server) == [where]
    assert found.compute_host == where
    # A host that was unavailable says what it has when it has come back to the queue.
    until(lambda: audit_of(cloud), lambda seen: not seen, "a clean audit")
    return Result(row, scene.site.kind, forward, seconds)


def asked(scene: Scene) -> bool:
    """Whether the cloud took the request: right after the fault before, a host may not have shown yet that it lives."""
    try:
        scene.cloud.admin.compute.migrate_server(scene.server, host=scene.target)
    except (openstack.exceptions.BadRequestException, openstack.exceptions.ConflictException):
        return False
    return True


def settled(scene: Scene) -> Any:
    """The server when its move has ended, one way or the other."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(openstack.exceptions.SDKException, errors.CausewayError):
            # First: a server that waits for the end of its confirm has no task, and was perhaps read before it.
            is_over = not journal.unfinished(scene.cloud.api_database)
            found = scene.cloud.show(scene.server)
            if is_over and found.task_state is None:
                return found
        assert time.monotonic() < end, f"not settled: {journal.unfinished(scene.cloud.api_database)}"
        time.sleep(0.1)


def audit_of(cloud: Deployment) -> list[Any]:
    try:
        return list(audit(cloud))
    except AssertionError as failure:
        return [str(failure)]


def moves_once_more(scene: Scene) -> None:
    """What stands works: the move is reverted if there was one, and another one is made and confirmed."""
    cloud, server = scene.cloud, scene.server
    if cloud.show(server).status == "VERIFY_RESIZE":
        cloud.member.compute.revert_server_resize(server.id)
        cloud.wait(server, "ACTIVE")
    until(lambda: asked(scene), bool, "the next move to be accepted")
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.running_on(server) == [scene.target]


def other_cell(cloud: Deployment, host: str) -> str:
    """A host of the other cell."""
    return next(other for other, cell in cloud.hosts.items() if cell != cloud.hosts[host])


def with_whole_disk(cloud: Deployment) -> Any:
    """An ACTIVE server whose image is gone."""
    member = cloud.member
    image = member.image.create_image(
        name="big", disk_format="raw", container_format="bare", data=bytes(range(1, 256)) * (DISK // 255)
    )
    server = cloud.wait(cloud.create(image), "ACTIVE")
    member.image.delete_image(image)
    return server


def table() -> str:
    """Of all that was run."""
    made = Table("fault", "when", "database", "outcome", "settled after", "audit", title="Faults of real parts")
    for result in results:
        outcome = "forward" if result.forward else "rolled back"
        row = result.row
        made.add_row(row.fault, row.moment.name, result.database, outcome, f"{result.seconds:.0f} s", "clean")
    console = Console(width=150)
    with console.capture() as capture:
        console.print(made)
    return capture.get()


def main() -> None:
    parser = ArgumentParser(description="Strikes the parts of a cloud, and prints what came of it.")
    parser.add_argument("--around", choices=["devcloud", "services"], default="services")
    parser.add_argument("--database", choices=["mariadb", "postgresql"], default="postgresql")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    start = site_with_devcloud if given.around == "devcloud" else site_with_services
    with (
        TemporaryDirectory(prefix="causeway-faults-", ignore_cleanup_errors=True) as folder,
        start(Path(folder), given.database) as site,
    ):
        try:
            for row in rows(given.words, real=site.services is not None):
                result = run(site, row)
                print(f"{row.name}: {result.seconds:.0f} s", file=sys.stderr, flush=True)
        finally:
            print(table())


if __name__ == "__main__":
    main()
