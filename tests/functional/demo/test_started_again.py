"""A state directory is started again: with more hosts than before, or by a newer release."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.settings import FORMER_POLICY, POLICY, StateDir
from causeway.store.api import aggregates

pytestmark = pytest.mark.embedded("starts clouds of its own")


def members(cloud: EmbeddedCloud) -> dict[str, set[str]]:
    return {each.name: set(each.hosts) for each in aggregates.list_all(cloud.api_database)}


@pytest.mark.parametrize("names_are_known", [True, False], ids=["", "by an older version"])
def test_hosts_that_are_new_get_an_aggregate_and_others_keep_what_users_made_of_them(
    tmp_path: Path, names_are_known: bool
) -> None:
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=2)
    cloud.start()
    try:
        assert members(cloud) == {"gen1": {"cell1-host1", "cell1-host2"}, "gen2": {"cell2-host1", "cell2-host2"}}
        if names_are_known:
            gen1 = next(each for each in aggregates.list_all(cloud.api_database) if each.name == "gen1")
            aggregates.remove_host(cloud.api_database, gen1.id, "cell1-host2")
    finally:
        cloud.stop()
    if not names_are_known:
        cloud.state.path.joinpath("filled").write_text("")
    cloud = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=3)
    cloud.start()
    try:
        kept = set() if names_are_known else {"cell1-host2"}
        assert members(cloud) == {
            "gen1": {"cell1-host1", "cell1-host3"} | kept,
            "gen2": {"cell2-host1", "cell2-host2", "cell2-host3"},
        }
    finally:
        cloud.stop()


def test_a_policy_that_nobody_edited_follows_the_release(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state")
    state.path.mkdir()
    state.policy.write_text(FORMER_POLICY)
    state.prepare()
    assert state.policy.read_text() == POLICY
    for mine in ("{}\n", FORMER_POLICY + "# mine\n"):
        state.policy.write_text(mine)
        state.prepare()
        assert state.policy.read_text() == mine
