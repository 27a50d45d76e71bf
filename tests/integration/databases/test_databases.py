"""The main job with its records and its journal in PostgreSQL and in MariaDB, as in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from causeway.audit import audit_embedded
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.sagas import SagaState, StepState
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud, until


@pytest.fixture(scope="module")
def cloud(new_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    embedded = EmbeddedCloud(
        Path(tmp_path_factory.mktemp("cloud")), port=0, cells=2, hosts_per_cell=2, database_url=new_database
    )
    embedded.start()
    yield Cloud(embedded)
    embedded.stop()


def test_a_server_is_moved_and_confirmed(cloud: Cloud) -> None:
    server = cloud.boot(metadata={"k": "v"}, tags=["blue"])
    cloud.attach(server, cloud.volume())
    moved = cloud.resized(server)
    assert moved.compute_host.startswith("cell2")
    assert cloud.confirmed(server).status == "ACTIVE"
    assert cloud.cleanups(server, "cell1") == []
    resize, confirm = cloud.moves(server)
    assert (resize.state, confirm.state) == (SagaState.DONE, SagaState.DONE)
    steps = journal.steps(cloud.parts.api_database, resize.id)
    assert {step.state for step in steps} == {StepState.DONE}
    assert all(step.started_at and step.ended_at and step.started_at <= step.ended_at for step in steps)


def test_a_server_is_moved_and_reverted(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.show(server)
    cloud.resized(server)
    after = cloud.reverted(server)
    assert (after.status, after.compute_host) == ("ACTIVE", before.compute_host)
    assert cloud.cleanups(server, "cell2") == []


def test_a_move_that_fails_restores_the_server(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.show(server)
    cloud.without_rounds()
    cloud.fail("status", "/file$", method="PUT", service="image", status=413)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    after = cloud.failed(server)
    cloud.settle()
    cloud.heal()
    assert (after.status, after.compute_host) == ("ACTIVE", before.compute_host)
    assert cloud.cleanups(server, "cell2") == []


def test_many_servers_move_at_once(cloud: Cloud) -> None:
    servers = [cloud.boot(f"crowd-{number}", flavor="any.small") for number in range(4)]
    for server in servers:
        cloud.member.compute.resize_server(server.id, "gen2.small")
    for server in servers:
        until(partial(cloud.migration, server), lambda found: found.status in ("finished", "error"), "a move")
        shown = cloud.admin.compute.get("/os-migrations", params={"instance_uuid": server.id}).json()["migrations"][0]
        assert shown["status"] == "finished", shown
    listed = [found.id for found in cloud.member.compute.servers(name="crowd")]
    assert sorted(listed) == sorted(server.id for server in servers)
    for server in servers:
        cloud.confirmed(server)


def test_everything_agrees_in_the_end(cloud: Cloud) -> None:
    cloud.settle()
    assert audit_embedded(cloud.parts).disagreements == []
