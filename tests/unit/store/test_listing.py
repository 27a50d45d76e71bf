"""A list shows each server exactly once, in order, page by page, whatever moves between cells meanwhile.

Here all cells are asked for each page; see `test_mapped_pages` for the others.
"""

from __future__ import annotations

import uuid as uuids
from typing import Any

import pytest

from causeway import errors
from causeway.model.instance import Instance
from causeway.model.states import ServerStatus, TaskState, VmState
from causeway.store import listing
from causeway.store.cell import instances
from causeway.store.conditions import ChangedSince, HasStatus, HasTags, Matches, OneOf
from causeway.store.database import statements, utcnow
from causeway.store.listing import ServerQuery, SortKey, list_servers
from tests.unit.store.listed_cloud import (
    ALIVE,
    Cloud,
    check_everything,
    has_metadata,
    make_unreachable,
    with_everything,
)


class TestOrderAndPages:
    def test_cells_and_build_requests_are_merged_newest_first(self, cloud: Cloud) -> None:
        cloud.server("a", 0, at=1)
        cloud.server("b", 1, at=2)
        cloud.build_request("c", at=3)
        cloud.server("d", 0, at=4)
        assert cloud.names() == ["d", "c", "b", "a"]

    def test_pages_are_full_and_together_the_whole(self, cloud: Cloud) -> None:
        for number in range(11):
            cloud.server(f"s{number:02}", number % 2, at=number % 4)
        whole = cloud.names()
        assert len(set(whole)) == 11
        pages = cloud.pages(3)
        assert [len(page) for page in pages] == [3, 3, 3, 2]
        assert [name for page in pages for name in page] == whole

    def test_no_further_page_when_the_last_one_is_just_full(self, cloud: Cloud) -> None:
        for number in range(4):
            cloud.server(f"s{number}", number % 2, at=number)
        assert [len(page) for page in cloud.pages(2)] == [2, 2]

    @pytest.mark.parametrize("descending", [False, True])
    def test_what_is_not_set_sorts_as_smallest_in_pages_too(self, cloud: Cloud, descending: bool) -> None:
        for number, host in enumerate([None, "x", "y", None, "x", "Z"]):
            cloud.server(f"s{number}", number % 2, host=host, at=number)
        sort = (SortKey("host", descending),)
        page = list_servers(cloud.cells, ServerQuery("p", 100, sort=sort))
        hosts = [row.instance.host or "" for row in page.servers]
        assert hosts == sorted(hosts, reverse=descending)
        whole = cloud.names(sort=sort)
        assert [name for page in cloud.pages(1, sort=sort) for name in page] == whole

    def test_an_unknown_marker_is_refused(self, cloud: Cloud) -> None:
        cloud.server("a", 0)
        with pytest.raises(errors.BadRequest, match="marker"):
            cloud.names(marker=str(uuids.uuid4()))

    def test_a_build_request_can_be_the_marker(self, cloud: Cloud) -> None:
        cloud.server("old", 0, at=1)
        marker = cloud.build_request("new", at=2)
        assert cloud.names(marker=marker.uuid) == ["old"]

    def test_another_projects_server_is_no_marker(self, cloud: Cloud) -> None:
        other = cloud.server("other", 0, project_id="q")
        with pytest.raises(errors.BadRequest):
            cloud.names(marker=other.uuid)

    def test_filters_without_sql_fill_the_page_from_further_rows(self, cloud: Cloud) -> None:
        for number in range(450):
            metadata = {"wanted": "yes"} if number < 3 else {}
            cloud.server(f"s{number}", 0, at=number, metadata=metadata)
        found = cloud.names(limit=3, conditions=[ALIVE, has_metadata(wanted="yes")])
        assert found == ["s2", "s1", "s0"]

    def test_asking_all_cells_costs_two_statements_and_one_per_cell(self, cloud: Cloud) -> None:
        for number in range(20):
            cloud.server(f"s{number}", number % 2, at=number)
        before = statements.snapshot()
        cloud.names()
        assert statements.snapshot() - before == {"api": 2, "cell1": 1, "cell2": 1}


class TestConditions:
    @pytest.mark.parametrize("status", list(ServerStatus))
    def test_status_by_sql_is_the_status_shown(self, cloud: Cloud, status: ServerStatus) -> None:
        expected = []
        for vm_state in VmState:
            for task_state in (None, *TaskState):
                server = cloud.server(f"{vm_state}/{task_state}", 0, vm_state=vm_state, task_state=task_state)
                if server.status == status:
                    expected.append(server.display_name)
        assert sorted(cloud.names(conditions=[HasStatus((status,))])) == sorted(expected)

    def test_build_requests_are_judged_as_rows_are(self, cloud: Cloud) -> None:
        cloud.server("web-1", 0, tags=["a", "b"], at=1)
        cloud.server("db-1", 1, tags=["a"], at=2)
        cloud.build_request("web-2", tags=["b"], at=3)
        assert cloud.names(conditions=[Matches("display_name", "^web")]) == ["web-2", "web-1"]
        assert cloud.names(conditions=[HasTags(("a", "b"), all_of=True)]) == ["web-1"]
        assert cloud.names(conditions=[HasTags(("a", "b"), all_of=True, negated=True)]) == ["web-2", "db-1"]
        assert cloud.names(conditions=[HasTags(("b",), all_of=False, negated=True)]) == ["db-1"]
        assert cloud.names(conditions=[OneOf("vm_state", ("building",))]) == ["web-2"]

    def test_changes_since_shows_the_deleted_too(self, cloud: Cloud) -> None:
        gone = cloud.server("gone", 0, at=1)
        cloud.server("still", 0, at=2)
        moment = utcnow()
        instances.soft_delete(cloud.database(cloud.uuids[0]), gone.uuid)
        assert cloud.names() == ["still"]
        assert cloud.names(conditions=[ChangedSince(moment)]) == ["gone"]


class TestMoves:
    def test_the_row_of_the_mapped_cell_is_shown_whatever_the_hidden_flags_say(self, cloud: Cloud) -> None:
        server = cloud.server("s", 0)
        cloud.insert(Instance(**{**vars(server), "vm_state": VmState.RESIZED}), 1)
        (row,) = list_servers(cloud.cells, ServerQuery("p", 10)).servers
        assert row.cell_uuid == cloud.uuids[0]
        cloud.switch(server, 0, 1)
        (row,) = list_servers(cloud.cells, ServerQuery("p", 10)).servers
        assert row.cell_uuid == cloud.uuids[1]

    def test_a_stale_copy_does_not_answer_for_a_server_that_does_not_fit(self, cloud: Cloud) -> None:
        server = cloud.server("s", 0, vm_state=VmState.ACTIVE)
        cloud.insert(Instance(**{**vars(server), "vm_state": VmState.RESIZED}), 1)
        cloud.switch(server, 0, 1)
        assert cloud.names(conditions=[HasStatus((ServerStatus.ACTIVE,))]) == []
        assert cloud.names(conditions=[HasStatus((ServerStatus.VERIFY_RESIZE,))]) == ["s"]

    def test_a_server_without_a_mapping_is_gone(self, cloud: Cloud) -> None:
        cloud.insert(cloud.instance("ghost"), 0)
        assert cloud.names() == []

    def test_a_copy_does_not_stand_in_for_a_cell_that_is_down(
        self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = cloud.server("s", 0)
        cloud.copy(server, 1)
        cloud.server("other", 1)
        read = listing._read_cell

        def fail_cell1(cell_uuid: str, *arguments: Any) -> Any:
            if cell_uuid == cloud.uuids[0]:
                raise errors.DatabaseFailed("down")
            return read(cell_uuid, *arguments)

        monkeypatch.setattr(listing, "_read_cell", fail_cell1)
        make_unreachable(cloud.database(cloud.uuids[0]), monkeypatch)
        page = list_servers(cloud.cells, ServerQuery("p", 10))
        assert [row.instance.display_name for row in page.servers] == ["other"]
        assert [cell.name for cell in page.down] == ["cell1"]


def test_a_row_comes_with_its_tags_and_volumes(cloud: Cloud) -> None:
    check_everything(cloud, with_everything(cloud, "rich"))
