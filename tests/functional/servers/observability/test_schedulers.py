"""Schedulers are listed among the services, so that operators see when one is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from causeway import errors
from causeway.model.host import CELL0_UUID
from causeway.roles.scheduler import SchedulerService
from causeway.rpc import scheduler as scheduler_rpc
from causeway.store.cell import hosts
from causeway.store.database import utcnow
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {"cells": 1, "hosts_per_cell": 1, "overrides": {"DEFAULT": {"report_interval": 1}}}


def schedulers(cloud: Cloud) -> dict[str, Any]:
    return {each.host: each for each in cloud.admin.compute.services(binary="nova-scheduler")}


def test_the_clouds_scheduler_is_up(cloud: Cloud) -> None:
    (shown,) = schedulers(cloud).values()
    assert (shown.state, shown.status, shown.availability_zone) == ("up", "enabled", "internal")


@pytest.mark.embedded("starts a scheduler in its own process")
def test_one_that_ended_is_shown_as_down_and_can_be_deleted(cloud: Cloud) -> None:
    embedded = cloud.embedded
    database = embedded.cells.database(CELL0_UUID)
    second = SchedulerService(embedded.around, embedded.cells, "second")
    second.start()
    try:
        (record,) = hosts.list_services(database, host="second")
        assert record.topic == scheduler_rpc.TOPIC
        until(
            lambda: hosts.list_services(database, host="second")[0].last_seen_up,
            lambda seen: seen != record.last_seen_up,
            "another sign of life",
        )
    finally:
        second.stop()
    assert schedulers(cloud)["second"].state == "up"
    hosts.update_service(database, record.uuid, last_seen_up=utcnow() - timedelta(seconds=3600))
    shown = schedulers(cloud)["second"]
    assert shown.state == "down"
    refused = cloud.admin.compute.put(f"/os-services/{shown.id}", json={"status": "disabled"}, microversion="2.53")
    assert refused.status_code == 400
    cloud.admin.compute.delete_service(shown.id)
    assert "second" not in schedulers(cloud)


@pytest.mark.embedded("starts a scheduler in its own process")
def test_one_works_though_the_record_can_not_be_written(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = cloud.embedded

    def fails(*_: Any, **__: Any) -> None:
        raise errors.DatabaseFailed("The database failed.")

    monkeypatch.setattr(hosts, "report_service", fails)
    second = SchedulerService(embedded.around, embedded.cells, "second")
    second.start()
    second.stop()
    assert "second" not in schedulers(cloud)
