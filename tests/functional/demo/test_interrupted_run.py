"""A run of the demonstration that was interrupted does not keep the next one from its servers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from causeway.cli.demo.client import ADMIN
from causeway.cli.demo.cloud import DemoCloud
from causeway.cli.demo.emptying import DRAIN
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.story import Story
from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("starts a cloud of its own")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    embedded = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=1, overrides={"drains": {"interval": 0.1}})
    embedded.start()
    yield Cloud(embedded)
    embedded.stop()


def test_the_drain_of_an_interrupted_run_ends_and_its_hosts_are_open_again(cloud: Cloud) -> None:
    server = cloud.boot("story-1")
    story = Story(DemoCloud(cloud.embedded.state, "simulated"), Screen(Console(file=io.StringIO())), (Path(), "raw"))
    # Its server waits for a window that opens much later, and the host of the other cell is disabled beside it.
    opens = datetime.now(UTC) + timedelta(hours=12)
    window = f"mon-sun {opens:%H}:00-{opens + timedelta(hours=1):%H}:00 UTC"
    run = story._client.run
    run(
        "drain",
        "create",
        "--cell",
        "cell1",
        "--flavor",
        "gen1.small=gen2.small",
        "--window",
        window,
        DRAIN,
        cloud=ADMIN,
    )
    run("drain", "start", DRAIN, cloud=ADMIN)
    run("compute", "service", "set", "--disable", "cell2-host1", "nova-compute", cloud=ADMIN)
    until(lambda: open_hosts(cloud), lambda hosts: not hosts, "both hosts to be closed")

    story._clean_up()

    until(lambda: open_hosts(cloud), lambda hosts: hosts == {"cell1-host1", "cell2-host1"}, "both hosts to be open")
    until(lambda: drains(cloud), lambda found: [each["state"] for each in found] == ["cancelled"], "the drain to end")
    assert cloud.member.compute.find_server(server.id) is None


def open_hosts(cloud: Cloud) -> set[str]:
    services = cloud.admin.compute.services(binary="nova-compute")
    return {service.host for service in services if service.status == "enabled"}


def drains(cloud: Cloud) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cloud.admin.compute.get("/os-causeway/drains").json()["drains"]
    return found
