"""What Prometheus reads of a cloud in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.moves_cloud import PATIENCE, Cloud

pytestmark = pytest.mark.embedded("reads the metrics of a cloud of one process")


class Measured:
    """The samples at the cloud's /metrics. Counters of a process continue over its clouds: differences are what counts."""

    def __init__(self, cloud: Cloud) -> None:
        self._url = f"{cloud.parts.url}/metrics"
        self._before = self._samples()

    def _samples(self) -> str:
        return requests.get(self._url, timeout=10).text

    def now(self, name: str, **labels: str) -> float:
        return _sum(self._samples(), name, labels)

    def more(self, name: str, **labels: str) -> float:
        return self.now(name, **labels) - _sum(self._before, name, labels)


def _sum(samples: str, name: str, labels: dict[str, str]) -> float:
    # What all clouds of the process left is long: only the lines that matter are parsed.
    lines = "".join(line for line in samples.splitlines(keepends=True) if line.startswith((f"{name} ", f"{name}{{")))
    found = [sample for family in text_string_to_metric_families(lines) for sample in family.samples]
    return sum(sample.value for sample in found if labels.items() <= sample.labels.items())


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    embedded = EmbeddedCloud(tmp_path_factory.mktemp("cloud"), port=0, overrides={"metrics": {"enabled": True}})
    embedded.start()
    yield Cloud(embedded)
    embedded.stop()


def test_a_move_is_counted_with_its_steps_bytes_and_calls(cloud: Cloud) -> None:
    server = cloud.boot()
    measured = Measured(cloud)
    cloud.resized(server)
    cloud.settle()
    assert measured.more("causeway_operations_ended_total", recipe="resize", state="done") == 1
    assert measured.more("causeway_operation_seconds_count", recipe="resize", state="done") == 1
    steps = {"recipe": "resize", "phase": "do", "state": "done"}
    assert measured.more("causeway_operation_step_seconds_count", step="FinishAtTarget", **steps) == 1
    sent, received = (measured.more("causeway_move_bytes_total", direction=way) for way in ("sent", "received"))
    # What is left when the guest is off is offered, and counted where it is fetched.
    (move,) = cloud.moves(server)
    assert sent == move.data["warm"]["sent"] > 0
    assert received == sent + sum(disk["size"] for disk in move.data["offer"]["disks"])
    called = {"topic": "compute", "method": "finish_snapshot_based_resize_at_dest", "outcome": "ok"}
    assert measured.more("causeway_rpc_call_seconds_count", **called) == 1
    assert measured.more("causeway_rpc_served_seconds_count", **called) == 1
    assert measured.more("causeway_scheduler_seconds_count", outcome="placed") == 1
    # gen1's hosts
    assert measured.more("causeway_scheduler_refusals_total") >= 1
    route = {"method": "POST", "route": "/servers/{server_id}/action:resize", "status": "202"}
    assert measured.more("causeway_api_request_seconds_count", **route) == 1
    assert measured.now("causeway_rpc_waiting") == 0


def test_requests_that_are_refused(cloud: Cloud) -> None:
    measured = Measured(cloud)
    url = f"{cloud.parts.url}/compute/v2.1"
    assert requests.get(f"{url}/servers/x", timeout=10).status_code == 401
    assert cloud.member.compute.get("/nothing/like/this").status_code == 404
    assert cloud.member.compute.get("/servers/none").status_code == 404
    assert requests.request("ODD", f"{url}/", timeout=10).status_code == 404
    count = "causeway_api_request_seconds_count"
    assert measured.more(count, route="none", status="401") == 1
    assert measured.more(count, route="none", status="404") == 1
    assert measured.more(count, route="/servers/{server_id}", status="404") == 1
    assert measured.more(count, method="other", status="404") == 1


def test_refusals_of_the_scheduler_are_counted(cloud: Cloud) -> None:
    measured = Measured(cloud)
    flavor = cloud.flavor("huge", gen=2, disk=1 << 20)
    server = cloud.member.compute.create_server(
        name="huge", flavor_id=flavor, image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )
    cloud.wait(server, "ERROR")
    assert measured.more("causeway_scheduler_seconds_count", outcome="no_valid_host") == 1
    assert measured.more("causeway_scheduler_refusals_total", filter="Placement") >= 1


def test_where_moves_stand_is_read_from_the_journal(cloud: Cloud) -> None:
    server = cloud.boot()
    measured = Measured(cloud)
    assert measured.now("causeway_operations") == 0
    with cloud.held("prep_snapshot_based_resize_at_source") as arrived:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert arrived.wait(PATIENCE)
        where = {"recipe": "resize", "state": "running", "step": "HandOver"}
        assert measured.now("causeway_operations", **where) == 1
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    cloud.heal()
    assert measured.now("causeway_operations") == 0
