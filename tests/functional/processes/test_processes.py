"""The main job with every role in a process of its own, over RabbitMQ; conductors that die in the middle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causeway.model.sagas import SagaState
from causeway.store.api import journal
from tests.functional.processes.deployment import CONDUCTORS, Deployment
from tests.functional.processes.own_process import until
from tests.functional.processes.rabbit import rabbit, why_not

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

OTHER = {"host1": "host2", "host2": "host1"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("cloud")
    with rabbit(directory / "rabbit") as url:
        deployment = Deployment(directory, url)
        try:
            deployment.start()
            yield deployment
        finally:
            deployment.stop()


@pytest.fixture
def cloud(running: Deployment) -> Iterator[Deployment]:
    yield running
    running.delete_servers()


def test_a_server_moves_to_the_other_cell_and_stays(cloud: Deployment) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"resize": {"flavorRef": "large"}})
    cloud.wait(server, "VERIFY_RESIZE")
    assert cloud.running_on(server) == [OTHER[source]]
    _can_be_followed(cloud, answer.headers["X-OpenStack-Request-ID"])
    cloud.member.compute.confirm_server_resize(server.id)
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert (found.compute_host, found.flavor.name) == (OTHER[source], "large")
    _is_measured(cloud, source)
    assert cloud.running_on(server) == [OTHER[source]]


def _can_be_followed(cloud: Deployment, request_id: str) -> None:
    """By its request's id from the API to both computes: each has a log of its own."""

    def look() -> dict[str, list[str]]:
        logs = {name: process.log.splitlines() for name, process in cloud.processes.items()}
        return {name: [line for line in log if request_id in line] for name, log in logs.items()}

    # The conductor's line says how the move ended: users may see the server's status before.
    until(look, lambda lines: any(lines[name] for name in CONDUCTORS), "a conductor's line of the request")
    lines = look()
    assert all(lines[name] for name in ("api", "scheduler", *cloud.hosts)), lines


def _is_measured(cloud: Deployment, source: str) -> None:
    """By each role, in a process of its own; the API's workers add theirs up."""
    conductors = [cloud.measured(name) for name in CONDUCTORS]
    ended = 'causeway_operations_ended_total{recipe="resize",state="done"}'
    assert sum(each.get(ended, 0) for each in conductors) == 1
    for host, direction in ((source, "sent"), (OTHER[source], "received")):
        assert cloud.measured(host)[f'causeway_move_bytes_total{{direction="{direction}"}}'] > 0
    assert cloud.measured("scheduler")['causeway_scheduler_seconds_count{outcome="placed"}'] == 2
    asked = cloud.measured("api")
    resize = 'causeway_api_request_seconds_count{method="POST",route="/servers/{server_id}/action:resize",status="202"}'
    assert asked[resize] == 1
    assert sum(count for name, count in asked.items() if name.startswith("causeway_api_request_seconds_count")) > 10


def test_a_server_comes_back_when_its_resize_is_reverted(cloud: Deployment) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.member.compute.resize_server(server.id, "large")
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.member.compute.revert_server_resize(server.id)
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert (found.compute_host, found.flavor.name) == (source, "small")
    assert cloud.running_on(server) == [source]


@pytest.mark.parametrize("step", ["HandOver", "FinishAtTarget"])
def test_a_conductor_takes_over_the_move_of_one_that_is_killed(cloud: Deployment, step: str) -> None:
    """The step was done, and the journal does not know."""
    server = cloud.boot()
    source = cloud.show(server).compute_host
    point = f"resize.{step}.do.after"
    cloud.fault(point, delay=300)
    cloud.member.compute.resize_server(server.id, "large")
    hit = cloud.hit(point)
    before = journal.get(cloud.api_database, hit["move"])
    assert before.owner_host == hit["host"]
    cloud.processes[hit["host"]].kill()

    found = cloud.wait(server, "VERIFY_RESIZE", "ACTIVE")
    cloud.settle()
    after = journal.get(cloud.api_database, hit["move"])
    assert after.epoch > before.epoch
    moved = found.status == "VERIFY_RESIZE"
    assert after.state is (SagaState.DONE if moved else SagaState.FAILED)
    assert cloud.running_on(server) == [OTHER[source] if moved else source]

    cloud.start_role("conductor", hit["host"]).wait_ready()
    if moved:
        cloud.member.compute.confirm_server_resize(server.id)
        cloud.wait(server, "ACTIVE")


def test_the_status_of_a_healthy_cloud_is_success(cloud: Deployment) -> None:
    assert cloud.wrong() == {}
    checked = cloud.status()
    assert {
        "cell1: queue",
        "cell2: computes",
        "identity",
        "placement",
        "image",
        "network",
        "volume",
        "service user",
        "profiles of ports",
    } <= checked.keys()
