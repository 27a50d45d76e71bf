"""A cell with servers of every state is drained, and then `causeway manage cell delete` takes it and its hosts away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from causeway import errors
from causeway.cli.main import cli
from causeway.model.states import VmState
from causeway.store.api import aggregates, cells, cleanups, mappings
from causeway.store.cell import instances, many_servers
from causeway.store.shadow_tables import SHADOWS

from .drains_cloud import DrainsCloud, until
from .test_left_behind import ELSEWHERE, ONE, THERE, TWO, act, cell_of, in_error, planned

# The cloud is another one afterwards.
pytestmark = pytest.mark.embedded("a cell of it is deleted")
CLOUD: dict[str, Any] = {
    "overrides": {
        "drains": {"interval": 0.1, "retry_pause": 0.1},
    }
}
Manage = Callable[..., Result]


@pytest.fixture
def manage(cloud: DrainsCloud, tmp_path: Path) -> Manage:
    """``causeway manage`` with the configuration of a process of its own."""
    account = cloud.parts.accounts["placement"]
    options = tmp_path / "causeway.conf"
    options.write_text(
        f"""
[api_database]
connection = {cloud.parts.state.database("api")}
[placement]
auth_type = password
auth_url = {cloud.parts.accounts.auth_url}
username = {account.username}
password = {account.password}
project_name = {account.project_name}
user_domain_id = default
project_domain_id = default
"""
    )
    return lambda *arguments: CliRunner().invoke(cli, ["manage", *arguments, f"--config-file={options}"])


def refused(manage: Manage, *sentences: str) -> None:
    result = manage("cell", "delete", "cell1")
    assert result.exit_code == 1, result.output
    for sentence in sentences:
        assert sentence in result.stderr, result.stderr


def refuse(*_args: Any, **_more: Any) -> None:
    raise errors.DatabaseFailed("The database does not answer.")


@pytest.mark.long
def test_a_cell_is_drained_and_deleted(cloud: DrainsCloud, manage: Manage, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.option("reclaim_instance_interval", 36000)
    cloud.option("shelved_offload_time", -1)
    running, stopped, paused, kept, gone, broken = (
        cloud.on(ONE, name) for name in ["running", "stopped", "paused", "kept", "gone", "broken"]
    )
    offloaded, on_shelf, waiting = (cloud.on(TWO, name) for name in ["offloaded", "on_shelf", "waiting"])
    cloud.attach(offloaded, cloud.volume())
    cloud.member.compute.stop_server(stopped.id)
    cloud.wait(stopped, "SHUTOFF")
    act(cloud, paused, "pause")
    cloud.wait(paused, "PAUSED")
    memory = cloud.remember(running, "a line")
    in_error(cloud, broken)
    shelved_on_host(cloud, on_shelf)
    shelved_on_host(cloud, offloaded)
    act(cloud, offloaded, "shelveOffload", user=cloud.admin)
    cloud.wait(offloaded, "SHELVED_OFFLOADED")
    hostless = in_error_without_host(cloud)
    for each in (gone, kept):
        cloud.member.compute.delete_server(each.id)
        until(partial(cloud.record, each, "cell1"), lambda record: record.vm_state is VmState.SOFT_DELETED, "")
    act(cloud, gone, "forceDelete", user=cloud.admin)
    until(lambda: instances.find(cloud.cell("cell1"), gone.id), lambda found: found is None, "it to go")
    cloud.resized(waiting, "any.medium")
    refused(
        manage, "It has 9 servers", "2 hosts (cell1-host1, cell1-host2) that may get new servers", "Moves of 1 server"
    )

    drain, plan = planned(cloud, targets={"cells": ["cell2"]})
    assert plan["movable"] == 7 and plan["blocked"] == 2
    cloud.act(drain, "start")
    until(lambda: cloud.states(drain), lambda states: states == {"done": 7, "blocked": 2}, "all but two to have moved")
    refused(manage, "It has 2 servers", f"Drain empty ({drain}) still works on it")
    # What only its owner can decide.
    cloud.reverted(waiting)
    act(cloud, kept, "restore", user=cloud.admin)
    cloud.becomes_drain(drain, "done")
    cloud.settle()

    servers = (running, stopped, paused, kept, broken, offloaded, on_shelf, waiting, hostless)
    assert {cell_of(cloud, each) for each in servers} == {"cell2"}
    statuses = [cloud.show(each).status for each in servers]
    assert statuses == [
        *["ACTIVE", "SHUTOFF", "PAUSED", "ACTIVE", "ERROR"],
        *["SHELVED_OFFLOADED"] * 2,
        "ACTIVE",
        "ERROR",
    ]
    assert cloud.memory(running) == memory
    assert cloud.audit().disagreements == []

    cell1 = cloud.parts.cells.of_server(running.id)[0].uuid
    cell1 = next(
        cell.uuid for cell in cells.list_cells(cloud.parts.api_database) if cell.uuid != cell1 and not cell.is_cell0
    )
    with monkeypatch.context() as away:
        away.setattr(cleanups, "delete_of_cell", refuse)
        refused(manage, "The database does not answer.")
    for compute in (ONE, TWO):
        cloud.parts.computes[compute]._reporter.report_alive()
    # It is repeated, with hosts that have reported again.
    result = manage("cell", "delete", "cell1")
    assert result.exit_code == 0, result.output
    assert "Its hosts are deleted, too: cell1-host1, cell1-host2" in result.output
    check_nothing_is_left(cloud, cell1)
    for each in (offloaded, on_shelf):
        act(cloud, each, "unshelve")
        cloud.wait(each, "ACTIVE")
    assert cloud.host_of(offloaded) in (THERE, ELSEWHERE)
    assert manage("cell", "delete", "cell1").exit_code == 1


def shelved_on_host(cloud: DrainsCloud, server: Any) -> None:
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED")


def in_error_without_host(cloud: DrainsCloud) -> Any:
    server = in_error(cloud, shelved_away(cloud, cloud.on(TWO, "hostless")))
    assert cloud.show(server).compute_host is None
    # Nobody needs it any more.
    cloud.admin.image.delete_image(cloud.admin.image.find_image("hostless-shelved"))
    return server


def shelved_away(cloud: DrainsCloud, server: Any) -> Any:
    shelved_on_host(cloud, server)
    act(cloud, server, "shelveOffload", user=cloud.admin)
    return cloud.wait(server, "SHELVED_OFFLOADED")


def check_nothing_is_left(cloud: DrainsCloud, cell1: str) -> None:
    api, placement = cloud.parts.api_database, cloud.parts.around.placement
    assert [cell.name for cell in cells.list_cells(api)] == ["cell0", "cell2"]
    assert sorted(cells.hosts(api)) == [THERE, ELSEWHERE]
    assert sorted(provider.name for provider in placement.list_providers()) == [THERE, ELSEWHERE]
    assert not {host for each in aggregates.list_all(api) for host in each.hosts} & {ONE, TWO}
    assert mappings.of_cell(api, cell1) == set()
    assert cleanups.listed(api) == []
    database = cloud.cell("cell1")
    assert many_servers.living(database) == set()
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM instances").scalar() == 0
        # Of the one that was deleted.
        assert connection.exec_driver_sql(f"SELECT count(*) FROM {SHADOWS['instances'].name}").scalar() == 1
