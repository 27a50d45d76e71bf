"""A cloud that is upgraded host by host: what is too old moves no server between cells, and nothing is half done."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import openstack.exceptions
import pytest

from causeway.model import versions
from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud

# The scheduler is to see at once what versions hosts report.
CLOUD = {"overrides": {"scheduler": {"host_state_max_age": 0.0}}}


def report_version(cloud: Cloud, host: str, version: int) -> None:
    database = cloud.cell(host[:5])
    service = hosts.list_services(database, host=host, binary="nova-compute")[0]
    hosts.update_service(database, service.uuid, version=version)


@pytest.fixture
def old(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a cell's hosts report the version before moves between cells."""
    known = hosts.report_service
    aged: set[str] = set()

    def report(database: Any, host: str, *rest: Any, **more: Any) -> Any:
        if host in aged:
            rest = (*rest[:2], versions.CROSS_CELL.service - 1)
        return known(database, host, *rest, **more)

    monkeypatch.setattr(hosts, "report_service", report)

    def age(cell: str) -> None:
        for host in cloud.parts.computes:
            if host.startswith(cell):
                aged.add(host)
                report_version(cloud, host, versions.CROSS_CELL.service - 1)

    yield age
    for host in aged:
        report_version(cloud, host, versions.SERVICE)


def refused(cloud: Cloud, server: Any, before: dict[str, Any]) -> None:
    """No host of its own cell fits the flavor: the resize fails before anything was begun."""
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert cloud.migration(server).dest_compute is None
    assert [event for event, _result in cloud.events(server, "resize")] == ["conductor_migrate_server", "cold_migrate"]


def test_the_source_is_too_old(cloud: Cloud, old: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    old("cell1")
    with caplog.at_level(logging.INFO, "causeway.api"):
        refused(cloud, server, before)
    assert "stays in its cell: the compute service of its host" in caplog.text
    # Inside the cell everything is as ever.
    assert cloud.confirmed(cloud.resized(server, "any.medium")).status == "ACTIVE"


def test_all_targets_are_too_old(cloud: Cloud, old: Any) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    old("cell2")
    refused(cloud, server, before)
    with pytest.raises(openstack.exceptions.BadRequestException, match="too old"):
        cloud.admin.compute.migrate_server(server.id, host="cell2-host1")
    assert cloud.reality(server) == before


def test_an_upgrade_level_holds_all_of_them(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.option("compute", "1.0", group="upgrade_levels")
    with caplog.at_level(logging.INFO, "causeway.api"):
        refused(cloud, server, before)
    assert "[upgrade_levels] compute is 1.0" in caplog.text
    cloud.option("compute", "auto", group="upgrade_levels")
    assert cloud.confirmed(cloud.resized(server)).status == "ACTIVE"


@pytest.mark.embedded("changes an option while the cloud runs")
def test_a_move_that_is_done_can_be_ended_whatever_the_level(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.option("compute", "1.0", group="upgrade_levels")
    assert cloud.reverted(server).status == "ACTIVE"
