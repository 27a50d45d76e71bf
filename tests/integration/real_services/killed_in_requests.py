"""The real services are killed while requests are under way; what they leave half way, and what becomes of the operation.

An operation is held right before the request. Then a table of the service's database is locked from outside, so that the request
stands before it: behind everything that the service has committed so far. The service gets kill -9, the lock is released, the
service is started again. A request is struck at each table that it writes; one of Keystone at what it reads, since tokens are
stored nowhere.

``python -m tests.integration.real_services.killed_in_requests [--database mariadb] [--times N] [WORD...]`` runs the rows whose
names contain one of the words, and prints the table.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from tests.functional.processes.own_process import until
from tests.integration.database_locks import Lock, locked
from tests.integration.real_services.faults_of_parts import moves_once_more, other_cell
from tests.integration.real_services.services import RealServices
from tests.integration.real_services.sites import Site, site_with_services
from tests.integration.real_services.strikes import RESTART, Scene
from tests.integration.real_services.struck import FORWARD, OPERATIONS, ROLLED_BACK, STARTED_AGAIN, Operation

# Seconds for which the operation is held before the request, and within which the request comes to the lock then.
HOLD, COMES = 3, 25
# What each service has that operations make, in words.
LOOKS = {
    "keystone": ["SELECT concat('role assignment ', type) FROM assignment"],
    "cinder": [
        "SELECT concat('volume ', v.status, ', attachment ', coalesce(a.attach_status, 'none'))"
        " FROM volumes v LEFT JOIN volume_attachment a ON a.volume_id = v.id AND NOT a.deleted WHERE NOT v.deleted"
    ],
    "neutron": [
        "SELECT concat('binding ', status) FROM ml2_port_bindings WHERE host <> ''",
        "SELECT concat('port ', CASE WHEN device_id = '' THEN 'of nobody' ELSE 'of a server' END) FROM ports",
    ],
    "glance": ["SELECT concat('image ', status) FROM images WHERE NOT deleted AND name LIKE '%%resize-temp'"],
    "placement": [
        "SELECT CASE WHEN count(a.id) = 0 THEN 'consumer without allocations' ELSE 'consumer with allocations' END"
        " FROM consumers c LEFT JOIN allocations a ON a.consumer_id = c.uuid GROUP BY c.uuid",
        "SELECT concat('provider with ', count(i.id), ' inventories, ',"
        " (SELECT count(*) FROM resource_provider_traits t WHERE t.resource_provider_id = p.id), ' traits')"
        " FROM resource_providers p LEFT JOIN inventories i ON i.resource_provider_id = p.id GROUP BY p.id",
    ],
}


@dataclass(frozen=True)
class Row:
    """``call``: the request; ``table``: of the service's database, before which it stands. ``operation``: what asks for it.

    ``victim``: the process that stands there and is killed, if it is not the API. ``at``: the point at which the operation is
    held, if not right before the call. ``reads``: the request stands when it reads the table.
    """

    service: str
    call: str
    table: str
    operation: str = "migrate"
    victim: str = ""
    at: str = ""
    reads: bool = False

    @property
    def name(self) -> str:
        victim = f", {self.victim} killed" if self.victim else ""
        return f"{self.service}: {self.call} at {self.table}{victim} ({self.operation})"

    @property
    def ends(self) -> tuple[str, ...]:
        """How it may end. Whoever waits for an attach is refused; a compute that starts ends, and is started again."""
        return {"attach": (FORWARD, ROLLED_BACK), "start host": (FORWARD, STARTED_AGAIN)}.get(
            self.operation, (FORWARD,)
        )

    @property
    def point(self) -> str:
        return self.at or f"call.{self.call}.request"


@dataclass
class Result:
    """``left``: what had changed at the service when it was dead, compared with before the request. ``stood``: its statement."""

    row: Row
    stood: str
    left: str
    outcome: str
    seconds: float


def _each(service: str, call: str, tables: Sequence[str], operations: Sequence[str], victim: str = "") -> list[Row]:
    return [Row(service, call, table, operation, victim) for operation in operations for table in tables]


ATTACHMENTS, BINDINGS, PROVIDERS = "volume_attachment", "ml2_port_bindings", "resource_providers"
ATTACHMENT, PORT = "/v3/attachments/{attachment_id}", "/v2.0/ports/{port_id}"
BACKEND = "cinder-volume"
CHOOSES = "resize.SelectDestination.do.before"
ROWS = (
    *_each("cinder", "volume POST /v3/attachments", (ATTACHMENTS, "volumes"), ("migrate", "attach")),
    *_each("cinder", f"volume PUT {ATTACHMENT}", (ATTACHMENTS, "volumes"), ("migrate", "attach")),
    *_each("cinder", f"volume PUT {ATTACHMENT}", (ATTACHMENTS, "volumes"), ("migrate", "attach"), BACKEND),
    *_each("cinder", f"volume POST {ATTACHMENT}/action", (ATTACHMENTS, "volumes"), ("migrate", "attach")),
    *_each("cinder", f"volume DELETE {ATTACHMENT}", (ATTACHMENTS, "volumes"), ("migrate", "confirm", "delete")),
    *_each("neutron", "network POST /v2.0/ports", ("ports", "ipallocations", BINDINGS), ("create",)),
    *_each("neutron", f"network PUT {PORT}", (BINDINGS, "standardattributes"), ("unshelve",)),
    *_each("neutron", f"network DELETE {PORT}", ("ports",), ("delete",)),
    *_each("neutron", f"network POST {PORT}/bindings", (BINDINGS,), ("migrate",)),
    *_each(
        "neutron",
        f"network PUT {PORT}/bindings/{{host}}/activate",
        (BINDINGS, "standardattributes", "ml2_port_binding_levels"),
        ("migrate",),
    ),
    *_each("glance", "image POST /v2/images", ("images",), ("migrate",)),
    *_each("glance", "image PUT /v2/images/{image_id}/file", ("images", "image_locations"), ("migrate",)),
    *_each("glance", "image DELETE /v2/images/{image_id}", ("images",), ("migrate",)),
    *_each("placement", "placement POST /allocations", ("consumers", "allocations"), ("migrate",)),
    *_each("placement", "placement POST /allocations", ("allocations",), ("revert",)),
    *_each("placement", "placement PUT /allocations/{consumer}", ("consumers", "allocations"), ("create", "unshelve")),
    *_each(
        "placement", "placement DELETE /allocations/{consumer}", ("allocations", "consumers"), ("confirm", "delete")
    ),
    *_each("placement", "placement POST /resource_providers", (PROVIDERS,), ("start host",)),
    *_each(
        "placement", "placement PUT /resource_providers/{uuid}/inventories", ("inventories", PROVIDERS), ("start host",)
    ),
    *_each(
        "placement", "placement PUT /resource_providers/{uuid}/traits", ("resource_provider_traits",), ("start host",)
    ),
    Row("keystone", "POST /v3/auth/tokens", "password", "migrate without tokens", at=CHOOSES, reads=True),
    Row("keystone", "GET /v3/auth/tokens", "revocation_event", "migrate without tokens", at=CHOOSES, reads=True),
)

DATABASES = ("postgresql", "mariadb")
# Where it matters what one transaction of the service has.
IN_TRANSACTIONS = ("/allocations", "POST /v3/attachments at", "PUT /v3/attachments", "/bindings")

#: what came of all rows that were run
results: list[Result] = []


def rows_on(kind: str) -> list[Row]:
    """Whose connection stands there is known of PostgreSQL only, so workers are killed beside it alone."""
    if kind == "postgresql":
        return list(ROWS)
    return [row for row in ROWS if not row.victim and any(word in row.name for word in IN_TRANSACTIONS)]


def rows(words: list[str], kind: str) -> list[Row]:
    """Those whose names contain one of the words."""
    return [row for row in rows_on(kind) if not words or any(word in row.name for word in words)]


def run(site: Site, row: Row) -> Result | None:
    """None if no request of this kind came to the table. Raises AssertionError if anything is not as it must be in the end."""
    cloud, operation = site.cloud, OPERATIONS[row.operation]()
    before = look_everywhere(site)
    scene = operation.prepare(site)
    try:
        result = _struck(scene, row, operation)
    finally:
        cloud.fault("none", delay=0)
    if scene.server is not None:
        scene.source = (
            scene.source
            if cloud.show(scene.server).status == "VERIFY_RESIZE"
            else cloud.show(scene.server).compute_host
        )
        scene.target = other_cell(cloud, scene.source)
        moves_once_more(scene)
    operation.destroy(scene)
    until(lambda: look_everywhere(site), lambda now: now == before, f"nothing to be left ({before} before)")
    if result is not None:
        results.append(result)
    return result


def _struck(scene: Scene, row: Row, operation: Operation) -> Result | None:
    cloud = scene.cloud
    cloud.fault(row.point, delay=HOLD)
    with ThreadPoolExecutor(1) as users:
        answered = users.submit(operation.ask, scene)
        try:
            cloud.hit(row.point)
        except AssertionError:
            answered.result()
            operation.end(scene)
            return None
        stood, left, began = _kill(scene, row)
        answered.result()
    outcome = operation.end(scene)
    return Result(row, stood, left, outcome, time.monotonic() - began) if stood else None


def _kill(scene: Scene, row: Row) -> tuple[str, str, float]:
    """The statement at which the victim stood, if it came to one; what it left; and when."""
    services = scene.site.services
    assert services is not None
    url, victim = services.addresses.databases[row.service], row.victim or row.service
    before = look(url, row.service)
    with locked(url, row.table, for_reads=row.reads) as lock:
        stood = _words(lock, row.victim) if lock.is_awaited(HOLD + COMES, row.victim) else ""
        services.machine.kill(victim)
        began = time.monotonic()
    # What the dead process had begun ends with its connections.
    until(lambda: _waits(url), lambda count: not count, "its connections to end")
    after = look(url, row.service)
    time.sleep(RESTART)
    _start(services, row)
    return stood, _difference(before, after), began


def _start(services: RealServices, row: Row) -> None:
    if row.victim:
        services.start_worker(row.victim)
        return
    services.start_api(row.service)
    services.await_api(row.service)


def look_everywhere(site: Site) -> dict[str, list[str]]:
    assert site.services is not None
    return {service: look(site.services.addresses.databases[service], service) for service in LOOKS}


def look(url: str, service: str) -> list[str]:
    """What the service has committed."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return sorted(str(each) for query in LOOKS[service] for each in connection.exec_driver_sql(query).scalars())


def _waits(url: str) -> int:
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        return Lock(connection, connection).waiting()


def _words(lock: Lock, by: str) -> str:
    """What the statement that stands there does, and with which table."""
    statements = lock.statements(by)
    return _shortened(statements[0]) if statements else "a statement"


def _shortened(statement: str) -> str:
    words = statement.split()
    if words[0] == "SELECT":
        table = words[words.index("FROM") + 1] if "FROM" in words else ""
        return f"SELECT {table}".rstrip(", ")
    return " ".join(words[:3] if words[0] in ("INSERT", "DELETE") else words[:2])


def _difference(before: list[str], after: list[str]) -> str:
    gone, new = list(before), list(after)
    for each in before:
        if each in new:
            new.remove(each)
            gone.remove(each)
    return "; ".join([*(f"no {each}" for each in gone), *new]) or "nothing"


def table() -> str:
    """Of all that was run; the same in one line, with how often."""
    made = Table(
        "service", "request", "asked for by", "killed at", "left half way", "outcome", "times", "settled after"
    )
    made.title = "Killed in a request"
    seen: dict[tuple[str, ...], list[float]] = {}
    for each in results:
        row, service = each.row, each.row.victim or each.row.service
        seen.setdefault((service, row.call, row.operation, each.stood, each.left, each.outcome), []).append(
            each.seconds
        )
    for words, seconds in seen.items():
        made.add_row(*words, str(len(seconds)), f"{min(seconds):.0f} to {max(seconds):.0f} s")
    console = Console(width=250)
    with console.capture() as capture:
        console.print(made)
    return capture.get()


def main() -> None:
    parser = ArgumentParser(description="Kills services in the middle of requests, and prints what came of it.")
    parser.add_argument("--database", choices=DATABASES, default="postgresql")
    parser.add_argument("--times", type=int, default=1, help="How often each row is run.")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    with (
        TemporaryDirectory(prefix="causeway-killed-", ignore_cleanup_errors=True) as folder,
        site_with_services(Path(folder), given.database) as site,
    ):
        wrong = 0
        for row in [row for row in rows(given.words, given.database) for _ in range(given.times)]:
            try:
                result = run(site, row)
                said = f"{result.outcome}, left: {result.left}, stood: {result.stood}" if result else "not reached"
            except AssertionError as failure:
                result, said = None, f"WRONG: {failure}"
            wrong += result is None
            print(f"{row.name}: {said}", file=sys.stderr, flush=True)
        print(table())
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
