"""A state directory is started again: with more hosts than before, or by a newer release."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from causeway import errors
from causeway.cli.main import cli
from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.settings import FORMER_POLICIES, POLICY, StateDir
from causeway.store.api import aggregates, cells
from causeway.store.cell import hosts

pytestmark = pytest.mark.embedded("starts clouds of its own")


def members(cloud: EmbeddedCloud) -> dict[str, set[str]]:
    return {each.name: set(each.hosts) for each in aggregates.list_all(cloud.api_database)}


def test_hosts_that_are_new_get_an_aggregate_and_others_keep_what_users_made_of_them(tmp_path: Path) -> None:
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=2)
    cloud.start()
    try:
        assert members(cloud) == {"gen1": {"cell1-host1", "cell1-host2"}, "gen2": {"cell2-host1", "cell2-host2"}}
        gen1 = next(each for each in aggregates.list_all(cloud.api_database) if each.name == "gen1")
        aggregates.remove_host(cloud.api_database, gen1.id, "cell1-host2")
    finally:
        cloud.stop()
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=3)
    cloud.start()
    try:
        assert members(cloud) == {
            "gen1": {"cell1-host1", "cell1-host3"},
            "gen2": {"cell2-host1", "cell2-host2", "cell2-host3"},
        }
    finally:
        cloud.stop()


def test_a_cell_that_was_deleted_begins_anew(tmp_path: Path) -> None:
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=1)
    cloud.start()
    try:
        before = {cell.name: cell.uuid for cell in cells.list_cells(cloud.api_database)}
        service = hosts.list_services(cloud.cells.database(before["cell1"]), host="cell1-host1")[0]
        hosts.update_service(cloud.cells.database(before["cell1"]), service.uuid, disabled=True)
        done = CliRunner().invoke(cli, ["manage", "cell", "delete", "--config-file", str(cloud.state.manage), "cell1"])
        assert done.exit_code == 0, done.output
        assert members(cloud) == {"gen1": set(), "gen2": {"cell2-host1"}}
    finally:
        cloud.stop()
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=1)
    cloud.start()
    try:
        after = {cell.name: cell.uuid for cell in cells.list_cells(cloud.api_database)}
        assert after["cell2"] == before["cell2"]
        assert after["cell1"] != before["cell1"]
        assert cells.hosts(cloud.api_database) == {"cell1-host1": after["cell1"], "cell2-host1": after["cell2"]}
        assert members(cloud) == {"gen1": {"cell1-host1"}, "gen2": {"cell2-host1"}}
    finally:
        cloud.stop()


@pytest.mark.expects_errors("A host of cell cell1 is not mapped")
def test_a_cloud_that_can_not_start_leaves_nothing_running(tmp_path: Path) -> None:
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=1)
    cloud.start()
    cell2 = next(cell for cell in cells.list_cells(cloud.api_database) if cell.name == "cell2")
    cells.unmap_host(cloud.api_database, "cell1-host1")
    cells.map_host(cloud.api_database, "cell1-host1", cell2.uuid)
    cloud.stop()
    before = {thread.name for thread in threading.enumerate() if not thread.daemon}
    with pytest.raises(errors.Conflict, match="another cell"):
        EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=1).start()
    assert {thread.name for thread in threading.enumerate() if not thread.daemon} <= before


@pytest.mark.parametrize("former", FORMER_POLICIES)
def test_a_policy_that_nobody_edited_follows_the_release(tmp_path: Path, former: str) -> None:
    state = StateDir(tmp_path / "state")
    state.path.mkdir()
    state.policy.write_text(former)
    state.prepare()
    assert state.policy.read_text() == POLICY
    for mine in ("{}\n", former + "# mine\n"):
        state.policy.write_text(mine)
        state.prepare()
        assert state.policy.read_text() == mine
