"""The whole layout: API with two workers, two super conductors, scheduler, and per cell a conductor and two computes."""

from __future__ import annotations

import configparser
import json
import signal
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.model.states import PowerState
from causeway.store.api import cells as cell_records
from causeway.store.api import journal
from tests.functional.processes.consumer import VERSIONED, Consumer, check_move, consumer, secrets_of
from tests.functional.processes.deployment import CONDUCTORS, OPTIONS, Deployment
from tests.functional.processes.own_process import until
from tests.functional.processes.rabbit import rabbit, why_not

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

CELLS = {"cell1": ["host1", "host3"], "cell2": ["host2", "host4"]}
# Seconds. So long that no move is ever taken over because of it: whoever continues was notified.
LEASE = 120
DATABASES = {"api_database", "database"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("cloud")
    with rabbit(directory / "rabbit") as url:
        deployment = Deployment(
            directory,
            url,
            cells=CELLS,
            options={**OPTIONS, **VERSIONED, "moves": {"lease": LEASE}},
            cell_conductors=True,
        )
        try:
            deployment.start()
            yield deployment
            # How the others end is tested with fewer processes.
            ending = [deployment.processes.pop(name) for name in deployment.cell_conductors]
            for process in ending:
                process.terminate()
            assert {process.wait_ended() for process in ending} == {0}
        finally:
            deployment.kill()


@pytest.fixture
def cloud(running: Deployment) -> Iterator[Deployment]:
    yield running
    running.delete_servers()


def configured(deployment: Deployment, name: str) -> dict[str, dict[str, str]]:
    """What all files of a process say together."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read(deployment.files_of(name))
    return {group: dict(parser[group]) for group in parser.sections()}


def opened(process: Any) -> set[str]:
    """The databases that a process has open."""
    files = {str(file.resolve()) for file in Path(f"/proc/{process.pid}/fd").iterdir() if file.exists()}
    return {Path(file).stem for file in files if file.endswith(".sqlite")}


def other_cell(cloud: Deployment, host: str) -> set[str]:
    return {other for other, cell in cloud.hosts.items() if cell != cloud.hosts[host]}


def to_other_cell(cloud: Deployment, server: Any) -> None:
    cloud.admin.compute.migrate_server(server, host=min(other_cell(cloud, cloud.show(server).compute_host)))


def test_computes_have_no_database_and_conductors_of_cells_only_their_own(cloud: Deployment) -> None:
    for host in cloud.hosts:
        assert not DATABASES & configured(cloud, host).keys()
        assert "://" not in "".join(
            configured(cloud, host).get("DEFAULT", {}).get(name, "") for name in ("connection",)
        )
        assert opened(cloud.processes[host]) == set()
    for name, cell in cloud.cell_conductors.items():
        assert DATABASES & configured(cloud, name).keys() == {"database"}
        assert "placement" not in configured(cloud, name)
        assert opened(cloud.processes[name]) == {cell}


def test_the_api_has_two_workers(cloud: Deployment) -> None:
    pid = cloud.processes["api"].pid
    assert len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) == 2


def test_a_server_moves_to_the_other_cell_and_stays(cloud: Deployment) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    to_other_cell(cloud, server)
    found = cloud.wait(server, "VERIFY_RESIZE")
    cloud.member.compute.confirm_server_resize(server.id)
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert found.compute_host in other_cell(cloud, source)
    assert cloud.running_on(server) == [found.compute_host]
    mapped = cell_records.hosts(cloud.api_database)
    names = {cell.uuid: cell.name for cell in cell_records.list_cells(cloud.api_database)}
    assert {host: names[cell] for host, cell in mapped.items()} == cloud.hosts


def test_each_role_is_seen(cloud: Deployment) -> None:
    shown = {(each.binary, each.host): each.state for each in cloud.admin.compute.services()}
    conductors = {("nova-conductor", name) for name in (*CONDUCTORS, *cloud.cell_conductors)}
    others = conductors | {("nova-scheduler", "scheduler")}
    assert shown == dict.fromkeys(others | {("nova-compute", host) for host in cloud.hosts}, "up")
    assert cloud.wrong() == {}
    reported = cloud.status()
    assert reported["conductors"] == ("success", "2 up")
    assert reported["cell1: conductors"] == ("success", "1 up")


def test_nothing_is_lost_while_the_conductor_of_a_cell_is_gone(cloud: Deployment) -> None:
    """A server moves out of its cell. A compute that starts waits, and what its guests did meanwhile is seen."""
    moving, staying = cloud.boot(), cloud.boot()
    host = cloud.show(staying).compute_host
    name = f"{cloud.hosts[host]}-conductor"
    cloud.processes[name].kill()

    to_other_cell(cloud, moving)
    cloud.wait(moving, "VERIFY_RESIZE")
    cloud.member.compute.confirm_server_resize(moving.id)
    cloud.wait(moving, "ACTIVE")
    cloud.settle()
    cloud.processes[host].kill()
    guest = cloud.directory / "hosts" / host / "guests" / f"{staying.id}.json"
    guest.write_text(json.dumps(json.loads(guest.read_text()) | {"power_state": PowerState.SHUTDOWN}))
    compute = cloud.start_role("compute", host)
    assert cloud.show(staying).status == "ACTIVE"

    cloud.start_role("conductor", name).wait_ready()
    compute.wait_ready()
    cloud.wait(staying, "SHUTOFF")
    until(
        lambda: {each.state for each in cloud.admin.compute.services()}, lambda states: states == {"up"}, "all to be up"
    )


def catches_sigterm(process: Any) -> bool:
    """False once it has heard one: the next one would kill it."""
    said = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = (line.split()[1] for line in said.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))


def test_a_super_conductor_that_is_stopped_hands_its_move_over_at_once(cloud: Deployment) -> None:
    """While the API continues answering with both of its workers."""
    server = cloud.boot()
    point = "resize.HandOver.do.after"
    cloud.fault(point, delay=300)
    to_other_cell(cloud, server)
    hit = cloud.hit(point)
    stopped = cloud.processes[hit["host"]]
    stopped.terminate()
    until(lambda: catches_sigterm(stopped), lambda catches: not catches, "the signal to be heard")
    cloud.no_fault()
    cloud.wait(server, "VERIFY_RESIZE")
    assert stopped.wait_ended() == 0
    assert journal.get(cloud.api_database, hit["move"]).owner_host != hit["host"]
    steps = [step.step for step in journal.steps(cloud.api_database, hit["move"])]
    assert steps.count("HandOver") == 1
    cloud.start_role("conductor", hit["host"]).wait_ready()
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")


@pytest.fixture
def billing(cloud: Deployment, tmp_path: Path) -> Iterator[Consumer]:
    with consumer(f"{cloud.rabbit}/cloud", tmp_path / "heard") as listening:
        yield listening


def test_a_consumer_gets_novas_events_and_no_secrets(cloud: Deployment, billing: Consumer) -> None:
    """Of a resize into the other cell and its confirm: Nova's events in its order, and no secrets."""
    server = cloud.boot(admin_password="a-guests-password", user_data=b64encode(b"a-users-data").decode())
    source = cloud.show(server).compute_host
    migrated = cloud.admin.compute.post(
        f"/servers/{server.id}/action", json={"migrate": {"host": min(other_cell(cloud, source))}}, microversion="2.56"
    )
    found = cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    billing.wait_for(server, "instance.resize_confirm.end")

    check_move(billing.heard(server, ""), source, found.compute_host, CONDUCTORS)
    resize = billing.wait_for(server, "instance.resize.end")
    assert resize["context"]["request_id"] == migrated.headers["X-OpenStack-Request-ID"]
    assert resize["payload"]["nova_object.name"] == "InstanceActionPayload"
    for secret in {*secrets_of(cloud), "a-guests-password", b64encode(b"a-users-data").decode()}:
        assert secret not in billing.text
