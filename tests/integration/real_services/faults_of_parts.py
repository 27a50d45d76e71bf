"""Faults of real parts: what is struck, when, for how long; and what must be true when everything has settled.

``python -m tests.integration.real_services.faults_of_parts [--around devcloud] [--database mariadb] [WORD...]`` runs the rows
whose names contain one of the words, and prints the table.
"""

from __future__ import annotations

import sys
import time
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import openstack
from rich.console import Console
from rich.table import Table
from tests.functional.processes.deployment import CONDUCTORS, Deployment, until
from tests.functional.processes.network_cut import Cable
from tests.functional.processes.rabbit import Broker, own_broker
from tests.integration.database_servers import Server, own_server
from tests.integration.real_services.audits import audit
from tests.integration.real_services.services import RealServices

from causeway.embedded.settings import POLICY
from causeway.store.api import journal

# Seconds: what systemd waits until it starts a process again; how long a part is away; how long a host is cut off.
RESTART, AWAY, CUT = 3, 20, 60
# What a fault point holds the move for: the fault strikes meanwhile.
HOLD = 2
# Seconds until everything must have settled after the part is back.
PATIENCE = 180
# Bytes of a disk that has to go up and down whole: many of the pieces in which it is sent.
DISK = 24 << 20


class Part(Protocol):
    """A server of somebody else's."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


@dataclass
class Site:
    """A deployment whose parts can be struck."""

    cloud: Deployment
    broker: Broker
    database: Server
    services: RealServices | None = None
    results: list[Result] = field(default_factory=list)
    image: str = ""

    def ports(self) -> list[int]:
        """Of all that a compute talks to."""
        broker = int(self.broker.url.rpartition(":")[2])
        if self.services is not None:
            return [broker, *self.services.addresses.ports.values()]
        return [broker, int(self.cloud.member.session.get_endpoint(service_type="image").split(":")[2].split("/")[0])]


@dataclass
class Scene:
    """A move that is held at a point."""

    site: Site
    server: Any
    source: str
    target: str
    #: which conductor has the move
    conductor: str = ""

    @property
    def cloud(self) -> Deployment:
        return self.site.cloud


@dataclass(frozen=True)
class Row:
    """One fault. ``strike`` does it, and brings back what it took away; ``prepare`` comes before the move begins."""

    fault: str
    when: str
    point: str
    strike: Callable[[Scene], None]
    #: a disk that goes whole, not only what differs from its image
    whole_disk: bool = False
    prepare: Callable[[Scene], None] = lambda _scene: None
    clean: Callable[[Scene], None] = lambda _scene: None
    #: only beside the real services
    real: bool = False


@dataclass
class Result:
    row: Row
    outcome: str
    seconds: float
    disagreements: int


# strikes


def killed(which: Callable[[Scene], str]) -> Callable[[Scene], None]:
    """kill -9, and a new process some seconds later, as systemd would."""

    def strike(scene: Scene) -> None:
        name = which(scene)
        scene.cloud.processes[name].kill()
        time.sleep(RESTART)
        scene.cloud.restart(name).wait_ready()

    return strike


def away(which: Callable[[Site], Part], seconds: float) -> Callable[[Scene], None]:
    """Stopped, and started again."""

    def strike(scene: Scene) -> None:
        part = which(scene.site)
        part.stop()
        time.sleep(seconds)
        part.start()

    return strike


def service_away(name: str, seconds: float) -> Callable[[Scene], None]:
    """The API of a service around dies, and comes back."""

    def strike(scene: Scene) -> None:
        services = scene.site.services
        if services is None:
            devcloud(scene, seconds)
            return
        services.machine.kill(name)
        time.sleep(seconds)
        services.start_api(name)
        services.await_api(name)

    return strike


def devcloud(scene: Scene, seconds: float) -> None:
    """All services around are one process there."""
    scene.cloud.processes["devcloud"].kill()
    time.sleep(seconds)
    scene.cloud.restart("devcloud").wait_ready()


@dataclass
class Cut:
    """The compute of one side of the move gets a network of its own, which is cut."""

    which: Callable[[Scene], str]
    cables: dict[str, Cable] = field(default_factory=dict)

    def prepare(self, scene: Scene) -> None:
        name = self.which(scene)
        self._end(scene.cloud, name)
        self.cables[name] = Cable(scene.cloud.directory / f"cable-{len(self.cables)}-{name}", scene.site.ports())
        scene.cloud.restart(name, prefix=self.cables[name].prefix).wait_ready()

    def strike(self, scene: Scene) -> None:
        cable = self.cables[self.which(scene)]
        cable.cut()
        time.sleep(CUT)
        cable.mend()

    def clean(self, scene: Scene) -> None:
        for name, cable in self.cables.items():
            cable.mend()
            self._end(scene.cloud, name)
            cable.remove()
            scene.cloud.restart(name).wait_ready()
        self.cables.clear()

    def _end(self, cloud: Deployment, name: str) -> None:
        cloud.processes[name].terminate()
        cloud.processes[name].wait_ended()


SOURCE_CUT, TARGET_CUT = Cut(lambda scene: scene.source), Cut(lambda scene: scene.target)
SENDS = "compute.prep_snapshot_based_resize_at_source.before"
COMES_UP = "compute.finish_snapshot_based_resize_at_dest.before"
IS_UP = "compute.finish_snapshot_based_resize_at_dest.after"


def other_conductor(scene: Scene) -> str:
    return next(name for name in CONDUCTORS if name != scene.conductor)


# The table. One row, one test.
ROWS = (
    Row("kill -9 of the API", "the source lets go of the guest", SENDS, killed(lambda _: "api")),
    Row(
        "kill -9 of the scheduler",
        "the target is being chosen",
        "resize.SelectDestination.do.before",
        killed(lambda _: "scheduler"),
    ),
    Row(
        "kill -9 of the conductor that has the move",
        "the source lets go of the guest",
        SENDS,
        killed(lambda scene: scene.conductor),
    ),
    Row(
        "kill -9 of the conductor that has the move",
        "the guest comes up at the target",
        IS_UP,
        killed(lambda scene: scene.conductor),
    ),
    Row(
        "kill -9 of the conductor that has the move",
        "behind the switch to the target cell",
        "cross_cell_resize.ShowTarget.do.before",
        killed(lambda scene: scene.conductor),
    ),
    Row("kill -9 of the other conductor", "the source lets go of the guest", SENDS, killed(other_conductor)),
    Row(
        "kill -9 of the source's compute",
        "it lets go of the guest",
        "compute.prep_snapshot_based_resize_at_source.in",
        killed(lambda scene: scene.source),
    ),
    Row("kill -9 of the target's compute", "the guest comes up", COMES_UP, killed(lambda scene: scene.target)),
    Row("kill -9 of the target's compute", "the guest is up, nobody knows", IS_UP, killed(lambda scene: scene.target)),
    Row("RabbitMQ away for 20 s", "the source lets go of the guest", SENDS, away(lambda site: site.broker, AWAY)),
    Row("RabbitMQ away for 20 s", "the guest is up, nobody knows", IS_UP, away(lambda site: site.broker, AWAY)),
    Row(
        "RabbitMQ away for 20 s",
        "behind the switch to the target cell",
        "cross_cell_resize.ShowTarget.do.before",
        away(lambda site: site.broker, AWAY),
    ),
    Row("the database restarted", "the source lets go of the guest", SENDS, away(lambda site: site.database, 0)),
    Row("the database away for 20 s", "the source lets go of the guest", SENDS, away(lambda site: site.database, AWAY)),
    Row(
        "the database away for 20 s",
        "before the switch to the target cell",
        "cross_cell_resize.SwitchInstanceMapping.do.before",
        away(lambda site: site.database, AWAY),
    ),
    Row(
        "the database away for 20 s",
        "behind the switch to the target cell",
        "cross_cell_resize.SwitchInstanceMapping.do.after",
        away(lambda site: site.database, AWAY),
    ),
    Row(
        "Glance dies, back after 5 s",
        "in the middle of the upload",
        "disk.upload.in",
        service_away("glance", 5),
        whole_disk=True,
    ),
    Row(
        "Glance dies, back after 5 s",
        "in the middle of the download",
        "disk.download.in",
        service_away("glance", 5),
        whole_disk=True,
    ),
    Row("Keystone away for 20 s", "the source lets go of the guest", SENDS, service_away("keystone", AWAY), real=True),
    Row(
        "Neutron away for 20 s", "the guest comes up at the target", COMES_UP, service_away("neutron", AWAY), real=True
    ),
    Row("Cinder away for 20 s", "the source lets go of the guest", SENDS, service_away("cinder", AWAY), real=True),
    Row(
        "Placement away for 20 s",
        "the target is being chosen",
        "resize.SelectDestination.do.before",
        service_away("placement", AWAY),
        real=True,
    ),
    Row(
        "the source host cut off for 60 s",
        "it lets go of the guest",
        SENDS,
        SOURCE_CUT.strike,
        prepare=SOURCE_CUT.prepare,
        clean=SOURCE_CUT.clean,
    ),
    Row(
        "the target host cut off for 60 s",
        "the guest comes up",
        COMES_UP,
        TARGET_CUT.strike,
        prepare=TARGET_CUT.prepare,
        clean=TARGET_CUT.clean,
    ),
)


def rows(words: list[str], *, real: bool) -> list[Row]:
    """Those whose fault or moment contains one of the words."""
    found = [row for row in ROWS if real or not row.real]
    return [row for row in found if not words or any(word in f"{row.fault}: {row.when}" for word in words)]


# running them


def run(site: Site, row: Row) -> Result:
    """Raises AssertionError if anything is not as it must be when everything has settled."""
    cloud = site.cloud
    server = _with_whole_disk(site) if row.whole_disk else cloud.boot()
    source = cloud.show(server).compute_host
    scene = Scene(site, server, source, other_cell(cloud, source))
    row.prepare(scene)
    try:
        result = _struck(scene, row)
    finally:
        cloud.fault("none")
        row.clean(scene)
    _moves_once_more(scene)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, wait=60)
    site.results.append(result)
    return result


def _struck(scene: Scene, row: Row) -> Result:
    cloud = scene.cloud
    cloud.fault(row.point, delay=HOLD)
    until(lambda: _asked(scene), bool, "the move to be accepted")
    hit = cloud.hit(row.point)
    scene.conductor = journal.get(cloud.api_database, hit["move"]).owner or ""
    began = time.monotonic()
    row.strike(scene)
    found = _settled(scene)
    seconds = time.monotonic() - began
    forward = found.status == "VERIFY_RESIZE"
    where = scene.target if forward else scene.source
    assert found.status in ("VERIFY_RESIZE", "ACTIVE"), f"{found.status}: {found.fault}"
    assert cloud.running_on(scene.server) == [where]
    assert found.compute_host == where
    # A host that was away says what it has when it has come back to the queue.
    disagreements = until(lambda: _audit(cloud), lambda seen: not seen, "a clean audit")
    return Result(row, "forward" if forward else "given back", seconds, len(disagreements))


def _audit(cloud: Deployment) -> list[Any]:
    try:
        return list(audit(cloud))
    except AssertionError as failure:
        return [str(failure)]


def _asked(scene: Scene) -> bool:
    """Whether the cloud took the request: right after the fault before, a host may not have shown yet that it lives."""
    try:
        scene.cloud.admin.compute.migrate_server(scene.server, host=scene.target)
    except (openstack.exceptions.BadRequestException, openstack.exceptions.ConflictException):
        return False
    return True


def _settled(scene: Scene) -> Any:
    """The server when its move has ended, one way or the other."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(openstack.exceptions.SDKException):
            found = scene.cloud.show(scene.server)
            if found.task_state is None and not journal.unfinished(scene.cloud.api_database):
                return found
        assert time.monotonic() < end, f"not settled: {journal.unfinished(scene.cloud.api_database)}"
        time.sleep(0.1)


def _moves_once_more(scene: Scene) -> None:
    """What stands works: the move is reverted if there was one, and another one is made and confirmed."""
    cloud, server = scene.cloud, scene.server
    if cloud.show(server).status == "VERIFY_RESIZE":
        cloud.member.compute.revert_server_resize(server.id)
        cloud.wait(server, "ACTIVE")
    until(lambda: _asked(scene), bool, "the next move to be accepted")
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.running_on(server) == [scene.target]


def other_cell(cloud: Deployment, host: str) -> str:
    return next(other for other, cell in cloud.hosts.items() if cell != cloud.hosts[host])


def _with_whole_disk(site: Site) -> Any:
    """An ACTIVE server whose image is gone."""
    member = site.cloud.member
    image = member.image.create_image(
        name="big", disk_format="raw", container_format="bare", data=bytes(range(1, 256)) * (DISK // 255)
    )
    server = member.compute.create_server(
        name="server", flavor_id="small", image_id=image.id, networks=[{"uuid": site.cloud._network}]
    )
    found = site.cloud.wait(server, "ACTIVE")
    member.image.delete_image(image)
    return found


def print_table(results: list[Result], write: Callable[[str], None] | None = None) -> None:
    table = Table("fault", "when", "outcome", "settled after", "audit", title="Faults of real parts")
    for result in results:
        clean = "clean" if not result.disagreements else f"{result.disagreements} disagreements"
        table.add_row(result.row.fault, result.row.when, result.outcome, f"{result.seconds:.0f} s", clean)
    console = Console(width=140)
    with console.capture() as capture:
        console.print(table)
    (write or print)(capture.get())


@contextmanager
def site_with_devcloud(directory: Path, kind: str) -> Iterator[Site]:
    """Everything real but the services around."""
    with own_server(kind) as (new_database, server), own_broker(directory / "rabbit") as broker:
        cloud = Deployment(directory, broker.url, new_database=new_database)
        try:
            cloud.start()
            yield Site(cloud, broker, server)
        except BaseException:
            cloud.kill()
            raise
        cloud.stop()


@contextmanager
def site_with_services(directory: Path, kind: str) -> Iterator[Site]:
    """Everything real."""
    with own_server(kind) as (new_database, server), own_broker(directory / "rabbit") as broker:

        def surround(_cloud: Deployment) -> None:
            services.start()
            policy = directory / "policy.yaml"
            policy.write_text(POLICY)
            services.write_client_files(directory, policy)

        cloud = Deployment(directory, broker.url, new_database=new_database, surround=surround)
        services = RealServices(
            directory / "services",
            new_database=new_database,
            queue=f"{broker.url}/services",
            compute_url=f"{cloud.api_url}/v2.1",
            hosts=cloud.hosts,
        )
        try:
            cloud.start()
            yield Site(cloud, broker, server, services)
            cloud.stop()
        finally:
            try:
                cloud.kill()
            finally:
                services.stop()


def main() -> None:
    parser = ArgumentParser(description="Strikes the parts of a cloud, and prints what came of it.")
    parser.add_argument("--around", choices=["devcloud", "services"], default="services")
    parser.add_argument("--database", choices=["mariadb", "postgresql"], default="postgresql")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    start = site_with_devcloud if given.around == "devcloud" else site_with_services
    failed = []
    with TemporaryDirectory(prefix="causeway-faults-", ignore_cleanup_errors=True) as folder:
        with start(Path(folder), given.database) as site:
            for row in rows(given.words, real=site.services is not None):
                try:
                    result = run(site, row)
                except Exception:
                    failed.append(row)
                    traceback.print_exc()
                    break
                print(f"{row.fault}: {row.when}: {result.outcome}, {result.seconds:.0f} s", flush=True)
            print_table(site.results)
            if failed:
                sys.exit(1)


if __name__ == "__main__":
    main()
