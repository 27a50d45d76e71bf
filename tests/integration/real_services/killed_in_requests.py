"""The real services are killed while a request of a move is under way; what they leave half way, and what becomes of the move.

The move is held right before the request. Then a table of the service's database is locked from outside, so that the request
stands before it: behind everything that the service has committed so far. The service gets kill -9, the lock is released, the
service is started again. A request is struck at each table that it writes.

``python -m tests.integration.real_services.killed_in_requests [WORD...]`` runs the rows whose names contain one of the words, and
prints the table.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from tests.functional.processes.deployment import until
from tests.integration.database_locks import Lock, locked
from tests.integration.real_services.faults_of_parts import asked, audit_of, moves_once_more, other_cell, settled
from tests.integration.real_services.sites import Site, site_with_services
from tests.integration.real_services.strikes import RESTART, Scene

# Seconds for which the move is held before the request, and within which the request comes to the lock then.
HOLD, COMES = 3, 25
# What each service has of a move, in words.
LOOKS = {
    "cinder": "SELECT 'volume ' || v.status || ', attachment ' || coalesce(a.attach_status, 'none')"
    " FROM volumes v LEFT JOIN volume_attachment a ON a.volume_id = v.id AND NOT a.deleted WHERE NOT v.deleted",
    "neutron": "SELECT 'binding ' || status FROM ml2_port_bindings WHERE host <> ''",
    "glance": "SELECT 'image ' || status FROM images WHERE NOT deleted AND name LIKE '%%resize-temp'",
    "placement": "SELECT CASE WHEN count(a.id) = 0 THEN 'consumer without allocations' ELSE 'consumer with allocations' END"
    " FROM consumers c LEFT JOIN allocations a ON a.consumer_id = c.uuid GROUP BY c.uuid",
}


@dataclass(frozen=True)
class Row:
    """``call``: the request; ``table``: of the service's database, before which it stands. ``operation``: what asks for it."""

    service: str
    call: str
    table: str
    operation: str = "migrate"

    @property
    def name(self) -> str:
        return f"{self.service}: {self.call} at {self.table}"

    @property
    def point(self) -> str:
        return f"call.{self.call}.request"


@dataclass
class Result:
    """``left``: what had changed at the service when it was dead, compared with before the request. ``stood``: its statement."""

    row: Row
    stood: str
    left: str
    outcome: str
    seconds: float


ATTACHMENTS, BINDINGS = "volume_attachment", "ml2_port_bindings"
ROWS = (
    *(Row("cinder", "volume POST /v3/attachments", table) for table in (ATTACHMENTS, "volumes")),
    *(Row("cinder", "volume PUT /v3/attachments/{attachment_id}", table) for table in (ATTACHMENTS, "volumes")),
    *(Row("cinder", "volume POST /v3/attachments/{attachment_id}/action", table) for table in (ATTACHMENTS, "volumes")),
    *(
        Row("cinder", "volume DELETE /v3/attachments/{attachment_id}", table, operation)
        for table in (ATTACHMENTS, "volumes")
        for operation in ("migrate", "confirm")
    ),
    Row("neutron", "network POST /v2.0/ports/{port_id}/bindings", BINDINGS),
    *(
        Row("neutron", "network PUT /v2.0/ports/{port_id}/bindings/{host}/activate", table)
        for table in (BINDINGS, "standardattributes", "ml2_port_binding_levels")
    ),
    Row("glance", "image POST /v2/images", "images"),
    *(Row("glance", "image PUT /v2/images/{image_id}/file", table) for table in ("images", "image_locations")),
    Row("glance", "image DELETE /v2/images/{image_id}", "images"),
    *(Row("placement", "placement POST /allocations", table) for table in ("consumers", "allocations")),
)

#: what came of all rows that were run
results: list[Result] = []


def rows(words: list[str]) -> list[Row]:
    """Those whose names contain one of the words."""
    return [row for row in ROWS if not words or any(word in row.name for word in words)]


def run(site: Site, row: Row) -> Result | None:
    """None if no request of this kind came to the table. Raises AssertionError if anything is not as it must be in the end."""
    cloud = site.cloud
    server = _with_volume(site)
    source = cloud.show(server).compute_host
    scene = Scene(site, server, source, other_cell(cloud, source))
    try:
        result = _struck(scene, row)
    finally:
        cloud.fault("none", delay=0)
    if row.operation == "confirm":
        scene.source, scene.target = scene.target, scene.source
    moves_once_more(scene)
    volumes = [each["id"] for each in cloud.show(server).attached_volumes]
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, wait=60)
    for volume in volumes:
        _is(site, volume, "available")
        cloud.member.block_storage.delete_volume(volume)
    if result is not None:
        results.append(result)
    return result


def _struck(scene: Scene, row: Row) -> Result | None:
    cloud = scene.cloud
    if row.operation == "confirm":
        until(lambda: asked(scene), bool, "the move to be accepted")
        cloud.wait(scene.server, "VERIFY_RESIZE")
    cloud.fault(row.point, delay=HOLD)
    if row.operation == "confirm":
        cloud.member.compute.confirm_server_resize(scene.server.id)
    else:
        until(lambda: asked(scene), bool, "the move to be accepted")
    try:
        cloud.hit(row.point)
    except AssertionError:
        _end(scene, row)
        return None
    return _kill(scene, row)


def _kill(scene: Scene, row: Row) -> Result | None:
    services = scene.site.services
    assert services is not None
    url = services.addresses.databases[row.service]
    before = look(url, row.service)
    with locked(url, row.table) as lock:
        reached = lock.is_awaited(HOLD + COMES)
        stood = _words(lock) if reached else ""
        services.machine.kill(row.service)
        began = time.monotonic()
    # What the dead service had begun ends with its connections.
    until(lambda: _waits(url), lambda count: not count, "its connections to end")
    after = look(url, row.service)
    time.sleep(RESTART)
    services.start_api(row.service)
    services.await_api(row.service)
    outcome = _end(scene, row)
    if not reached:
        return None
    return Result(row, stood, _difference(before, after), outcome, time.monotonic() - began)


def _end(scene: Scene, row: Row) -> str:
    cloud = scene.cloud
    found = settled(scene)
    allowed = ("ACTIVE", "VERIFY_RESIZE")
    assert found.status in allowed, f"{found.status}: {found.fault}"
    forward = found.status == ("ACTIVE" if row.operation == "confirm" else "VERIFY_RESIZE")
    where = scene.target if forward or row.operation == "confirm" else scene.source
    assert cloud.running_on(scene.server) == [where]
    assert found.compute_host == where
    until(lambda: audit_of(cloud), lambda seen: not seen, "a clean audit")
    return "forward" if forward else "rolled back"


def look(url: str, service: str) -> list[str]:
    """What the service has committed of moves."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return sorted(str(each) for each in connection.exec_driver_sql(LOOKS[service]).scalars())


def _waits(url: str) -> int:
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        return Lock(connection, connection).waiting()


def _words(lock: Lock) -> str:
    """The first words of the statement that stands there."""
    statements = lock.statements()
    return " ".join(statements[0].split()[:3]) if statements else ""


def _difference(before: list[str], after: list[str]) -> str:
    gone, new = list(before), list(after)
    for each in before:
        if each in new:
            new.remove(each)
            gone.remove(each)
    return "; ".join([*(f"no {each}" for each in gone), *new]) or "nothing"


def _with_volume(site: Site) -> Any:
    """An ACTIVE server with a volume."""
    cloud = site.cloud
    server = cloud.boot()
    volume = cloud.member.block_storage.create_volume(size=1, name="data")
    cloud.member.block_storage.wait_for_status(volume, "available", wait=60)
    cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    _is(site, volume.id, "in-use")
    return server


def _is(site: Site, volume: str, status: str) -> None:
    storage: Callable[[str], Any] = site.cloud.member.block_storage.get_volume
    until(lambda: storage(volume).status, lambda seen: seen == status, f"{status} volume")


def table() -> str:
    """Of all that was run."""
    made = Table(
        "service", "request", "killed at", "left half way", "outcome", "settled after", title="Killed in a request"
    )
    for each in results:
        row = each.row
        made.add_row(row.service, row.call, each.stood or row.table, each.left, each.outcome, f"{each.seconds:.0f} s")
    console = Console(width=220)
    with console.capture() as capture:
        console.print(made)
    return capture.get()


def main() -> None:
    parser = ArgumentParser(description="Kills services in the middle of requests, and prints what came of it.")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    with (
        TemporaryDirectory(prefix="causeway-killed-", ignore_cleanup_errors=True) as folder,
        site_with_services(Path(folder), "postgresql") as site,
    ):
        try:
            for row in rows(given.words):
                result = run(site, row)
                said = f"{result.outcome}, left: {result.left}, stood: {result.stood}" if result else "not reached"
                print(f"{row.name} ({row.operation}): {said}", file=sys.stderr, flush=True)
        finally:
            print(table())


if __name__ == "__main__":
    main()
