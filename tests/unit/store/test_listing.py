"""A list shows each server exactly once, in order, page by page, whatever moves between cells meanwhile.

Here all cells are asked, for these mappings are as an older version wrote them; see `test_mapped_pages` for the others.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.model.states import ServerStatus, TaskState, VmState
from causeway.store import listing, schema, streams
from causeway.store.api import build_requests, mappings
from causeway.store.api import cells as cell_records
from causeway.store.cell import block_devices, copies, instances
from causeway.store.cells import Cells
from causeway.store.conditions import ChangedSince, Deleted, HasStatus, HasTags, Matches, OneOf, Predicate
from causeway.store.database import Database, statements, utcnow
from causeway.store.listed import JSON_COLUMNS, Listed
from causeway.store.listing import ServerQuery, SortKey, list_servers
from causeway.store.server_rows import after, key_of, sort_rows

FLAVOR = Flavor("1", "small", 1, 128, 1)
START = datetime(2026, 1, 1)
ALIVE = Deleted(False)


def has_metadata(**wanted: str) -> Predicate:
    """What no database is asked for."""
    return Predicate(lambda server: wanted.items() <= server.metadata.items(), frozenset({"metadata"}))


class Cloud:
    """An API database and two cells; servers are made and moved as the conductor does it."""

    def __init__(self, directory: Path, new_database: Callable[[str], str] | None = None) -> None:
        """``new_database`` gives the URL of a database of a name; of SQLite without it."""
        url = new_database or (lambda name: f"sqlite:///{directory}/{name}.sqlite")
        self.api = Database(url("api"), "api")
        schema.sync(self.api, "api")
        self.cells = Cells(self.api)
        self.uuids = []
        for number in (1, 2):
            cell = CellMapping(str(uuids.UUID(int=number)), f"cell{number}", "", url(f"cell{number}"))
            cell_records.save_cell(self.api, cell)
            self.uuids.append(cell.uuid)
        self.cells.refresh()
        for cell_uuid in self.uuids:
            schema.sync(self.database(cell_uuid), "cell")

    def database(self, cell_uuid: str) -> Database:
        return self.cells.database(cell_uuid)

    def close(self) -> None:
        self.cells.close()
        self.api.close()

    def empty(self) -> None:
        for database in (self.api, *map(self.database, self.uuids)):
            tables = (
                ["instances", "tags", "block_device_mapping"]
                if database is not self.api
                else ["instance_mappings", "build_requests", "moves"]
            )
            with database.write() as connection:
                for table in tables:
                    connection.exec_driver_sql(f"DELETE FROM {table}")

    def instance(self, name: str, *, at: int = 0, **fields: Any) -> Instance:
        uuid = str(uuids.uuid5(uuids.NAMESPACE_DNS, name))
        moment = START + timedelta(seconds=at)
        values: dict[str, Any] = {"project_id": "p", "user_id": "u", "vm_state": VmState.ACTIVE, "created_at": moment}
        return Instance(uuid=uuid, flavor=FLAVOR, **{"display_name": name} | values | fields)

    def map(self, instance: Instance, cell: int | None) -> None:
        mapping = mappings.InstanceMapping(
            instance.uuid, instance.project_id, "u", START, None if cell is None else self.uuids[cell]
        )
        with self.api.write() as connection:
            mappings.insert_in(connection, mapping)

    def insert(self, instance: Instance, cell: int) -> None:
        with self.database(self.uuids[cell]).write() as connection:
            instances.insert(connection, instance)

    def server(self, name: str, cell: int, **fields: Any) -> Instance:
        instance = self.instance(name, **fields)
        self.map(instance, cell)
        self.insert(instance, cell)
        return instance

    def build_request(self, name: str, **fields: Any) -> Instance:
        instance = self.instance(name, vm_state=VmState.BUILDING, **fields)
        self.map(instance, None)
        request = build_requests.BuildRequest(instance.uuid, "p", instance.created_at or START, instance)
        with self.api.write() as connection:
            build_requests.insert_in(connection, request)
        return instance

    # the writes of a move, one after the other
    def begin_move(self, instance: Instance) -> None:
        with self.api.write() as connection:
            connection.execute(
                listing.MOVES.insert(),
                {
                    "id": str(uuids.uuid4()),
                    "migration_uuid": instance.uuid,
                    "instance_uuid": instance.uuid,
                    "recipe": "cross_cell_resize",
                    "state": "running",
                    "epoch": 1,
                    "pivoted": False,
                    "data": {},
                    "started_at": utcnow(),
                },
            )

    def copy(self, instance: Instance, cell: int) -> None:
        self.insert(Instance(**{**vars(instance), "hidden": True}), cell)

    def switch(self, instance: Instance, before: int, after: int) -> None:
        with self.api.write() as connection:
            mappings.set_cell_in(connection, instance.uuid, self.uuids[after], expected=self.uuids[before])

    def hard_delete(self, instance: Instance, cell: int) -> None:
        copies.hard_delete(self.database(self.uuids[cell]), instance.uuid)

    def end_move(self, instance: Instance) -> None:
        with self.api.write() as connection:
            connection.execute(
                listing.MOVES.update()
                .where(listing.MOVES.c.instance_uuid == instance.uuid)
                .values(state="done", ended_at=utcnow())
            )

    def names(self, **query: Any) -> list[str]:
        given: dict[str, Any] = {"project_id": "p", "limit": 1000, "conditions": [ALIVE]}
        return [row.instance.display_name for row in list_servers(self.cells, ServerQuery(**given | query)).servers]

    def pages(self, size: int, **query: Any) -> list[list[str]]:
        pages, marker = [], None
        while True:
            given: dict[str, Any] = {"project_id": "p", "limit": size, "conditions": [ALIVE], "marker": marker}
            page = list_servers(self.cells, ServerQuery(**given | query))
            pages.append([row.instance.display_name for row in page.servers])
            if not page.more:
                return pages
            marker = page.servers[-1].instance.uuid


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path_factory.mktemp("cloud"))
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(module_cloud: Cloud) -> Cloud:
    module_cloud.empty()
    return module_cloud


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

    def test_older_mappings_cost_four_statements_and_one_per_cell(self, cloud: Cloud) -> None:
        for number in range(20):
            cloud.server(f"s{number}", number % 2, at=number)
        before = statements.snapshot()
        cloud.names()
        assert statements.snapshot() - before == {"api": 4, "cell1": 1, "cell2": 1}


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
        page = list_servers(cloud.cells, ServerQuery("p", 10))
        assert [row.instance.display_name for row in page.servers] == ["other"]
        assert [cell.name for cell in page.down] == ["cell1"]


MANY_TAGS = sorted(f"{number:02}{'é' * 58}" for number in range(50))


def with_everything(cloud: Cloud, name: str) -> Instance:
    """A server with as many tags as there may be, and twelve volumes, one of them detached by now."""
    server = cloud.server(
        name,
        0,
        tags=MANY_TAGS,
        metadata={"a": 'b"\\', "é": "☃"},
        image_meta=ImageMeta("i", properties={"hw_rng": "yes"}),
        network_info=[Vif("port", "fa:16:3e:00:00:01", "net", "label", [FixedIp("10.0.0.5", "sub")])],
        trusted_image_certificates=["c"],
        launched_at=START,
        host="h",
    )
    database = cloud.database(cloud.uuids[0])
    for number in range(12):
        device = BlockDevice(volume(12 + number), server.uuid, "volume", "volume", volume_id=volume(number))
        device.delete_on_termination = number % 2 == 0
        block_devices.add(database, device)
    block_devices.delete(database, volume(12))
    block_devices.add(database, BlockDevice(volume(99), server.uuid, "blank", "local"))
    return server


def volume(number: int) -> str:
    """The later ones come first in the order of their names."""
    return str(uuids.UUID(int=1000 - number))


def check_everything(cloud: Cloud, server: Instance) -> None:
    """A row with its tags and volumes is the server, and what was made of the server is the row."""
    found = listing.get_server(cloud.cells, server.uuid, volumes=True)
    assert found.tags == MANY_TAGS
    assert [(one.id, one.delete_on_termination) for one in found.volumes] == [
        (volume(number), number % 2 == 0) for number in range(1, 12)
    ]
    assert found.instance == server
    made = Listed.of(server, found.cell_uuid, found.volumes)
    texts = {name for name in found.values if name in JSON_COLUMNS}
    assert {name: value for name, value in found.values.items() if name not in texts} == {
        name: made.values[name] for name in found.values if name not in texts
    }
    assert {name: json.loads(found.values[name] or "null") for name in texts} == {
        name: json.loads(made.values[name]) for name in texts
    }


def test_a_row_comes_with_its_tags_and_volumes(cloud: Cloud) -> None:
    check_everything(cloud, with_everything(cloud, "rich"))


class _Interleaved:
    """Runs the writes of somebody else between the reads of a list, as a schedule says."""

    def __init__(
        self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, schedule: list[int], writes: list[Callable[[], None]]
    ):
        self.cloud, self.schedule, self.writes = cloud, list(schedule), list(writes)
        requests, read_cell, mapped, load = (
            listing._build_requests,
            listing._read_cell,
            listing._mapped,
            mappings.cells_of,
        )

        def ask_all(question: Any, *, cell0: bool = True) -> Any:
            from causeway.store.cells import Answers

            cells = self.cloud.cells.mappings(cell0=cell0)
            order = cells if self.flip() else cells[::-1]
            return Answers({cell.uuid: question(cell, self.cloud.database(cell.uuid)) for cell in order}, [])

        def ask(cell_uuids: Any, question: Any) -> Any:
            from causeway.store.cells import Answers

            order = list(cell_uuids) if self.flip() else list(cell_uuids)[::-1]
            return Answers(
                {one: question(self.cloud.cells.mapping(one), self.cloud.database(one)) for one in order}, []
            )

        monkeypatch.setattr(self.cloud.cells, "ask_all", ask_all)
        monkeypatch.setattr(self.cloud.cells, "ask", ask)
        for name, function in [("_build_requests", requests), ("_read_cell", read_cell), ("_mapped", mapped)]:
            monkeypatch.setattr(listing, name, self.before(function))
        monkeypatch.setattr(mappings, "cells_of", self.before(load))

    def flip(self) -> bool:
        return bool(self.schedule.pop(0) % 2) if self.schedule else True

    def step(self) -> None:
        count = self.schedule.pop(0) if self.schedule else 0
        for _ in range(min(count, len(self.writes))):
            self.writes.pop(0)()

    def before(self, function: Any) -> Any:
        def stepped(*arguments: Any, **named: Any) -> Any:
            self.step()
            return function(*arguments, **named)

        return stepped


def writes_of_a_move(cloud: Cloud, server: Instance, home: int, way: str) -> list[Callable[[], None]]:
    """What a move into the other cell writes, one after the other, and its confirm or revert."""
    away = 1 - home
    writes: list[Callable[[], None]] = [
        lambda: cloud.begin_move(server),
        lambda: cloud.copy(server, away),
        lambda: cloud.switch(server, home, away),
    ]
    if way == "revert":
        writes += [lambda: cloud.switch(server, away, home), lambda: cloud.hard_delete(server, away)]
    else:
        writes += [lambda: cloud.hard_delete(server, home)]
    writes += [lambda: cloud.end_move(server)]
    return writes


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    schedule=st.lists(st.integers(0, 4), max_size=10),
    home=st.integers(0, 1),
    way=st.sampled_from(["confirm", "revert"]),
)
def test_a_moving_server_is_listed_exactly_once(module_cloud: Cloud, schedule: list[int], home: int, way: str) -> None:
    """Whatever part of a move happens between the reads - all of it and the confirm, too."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", home, at=5)
    cloud.server("first", 0, at=9)
    cloud.server("last", 1, at=1)
    writes = writes_of_a_move(cloud, server, home, way)
    with pytest.MonkeyPatch.context() as monkeypatch:
        _Interleaved(cloud, monkeypatch, schedule, writes)
        assert cloud.names() == ["first", "moving", "last"]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    schedule=st.lists(st.integers(0, 4), max_size=16),
    home=st.integers(0, 1),
    way=st.sampled_from(["confirm", "revert"]),
    others=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=8),
    size=st.integers(2, 4),
)
def test_a_moving_server_is_listed_exactly_once_by_many_small_reads(
    module_cloud: Cloud, schedule: list[int], home: int, way: str, others: list[tuple[int, int]], size: int
) -> None:
    """The cells are read a few rows at a time, and between any two reads a part of the move happens."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", home, at=5)
    for number, (cell, at) in enumerate(others):
        cloud.server(f"other{number}", cell, at=at)
    writes = writes_of_a_move(cloud, server, home, way)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(streams, "SLACK", 1)
        monkeypatch.setattr(listing, "SLACK", 1)
        _Interleaved(cloud, monkeypatch, schedule, writes)
        shown = [name for page in cloud.pages(size) for name in page]
    assert sorted(shown) == sorted(["moving", *(f"other{number}" for number in range(len(others)))])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schedule=st.lists(st.integers(0, 2), max_size=8))
def test_a_server_that_gets_its_cell_is_listed_exactly_once(module_cloud: Cloud, schedule: list[int]) -> None:
    cloud = module_cloud
    cloud.empty()
    server = cloud.build_request("new", at=3)
    cloud.server("old", 1, at=1)

    def hand_over() -> None:
        with cloud.api.write() as connection:
            mappings.set_cell_in(connection, server.uuid, cloud.uuids[0], expected=None)
            build_requests.delete_in(connection, server.uuid)

    with pytest.MonkeyPatch.context() as monkeypatch:
        _Interleaved(cloud, monkeypatch, schedule, [lambda: cloud.insert(server, 0), hand_over])
        assert cloud.names() == ["new", "old"]


def test_a_server_seen_in_neither_cell_is_looked_up_again(module_cloud: Cloud) -> None:
    """The worst case: the new cell is read before the copy is written, the old one after its row has gone."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", 1)
    writes = [
        lambda: cloud.begin_move(server),
        lambda: cloud.copy(server, 0),
        lambda: cloud.switch(server, 1, 0),
        lambda: cloud.hard_delete(server, 1),
        lambda: cloud.end_move(server),
    ]
    with pytest.MonkeyPatch.context() as monkeypatch:
        # nothing before the build requests; cell1 first; nothing before it; everything before cell2
        _Interleaved(cloud, monkeypatch, [0, 1, 0, 5], writes)
        assert cloud.names() == ["moving"]


# home, copy elsewhere, name, host, state, seconds
SERVERS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, None]),
        st.booleans(),
        st.sampled_from(["a", "B", "ab", "é"]),
        st.sampled_from([None, "h1", "H2"]),
        st.sampled_from([VmState.ACTIVE, VmState.ERROR]),
        st.integers(0, 2),
    ),
    max_size=14,
)
SORTS: list[tuple[SortKey, ...]] = [
    (SortKey("display_name"),),
    (SortKey("display_name", descending=True), SortKey("host")),
    (SortKey("host", descending=True),),
    (SortKey("host"), SortKey("vm_state", descending=True), SortKey("created_at")),
    (SortKey("flavorid"), SortKey("launched_at", descending=True)),
]
CONDITIONS: list[list[Any]] = [
    [ALIVE],
    [ALIVE, Matches("display_name", "[aB]")],
    [ALIVE, HasStatus((ServerStatus.ERROR,))],
    [ALIVE, has_metadata(odd="yes")],
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    servers=SERVERS,
    size=st.integers(1, 7),
    sort=st.sampled_from(SORTS),
    conditions=st.sampled_from(CONDITIONS),
    slack=st.integers(1, 2),
    down=st.none() | st.tuples(st.integers(0, 1), st.integers(1, 2)),
)
def test_pages_are_what_the_whole_list_is_cut_into(
    module_cloud: Cloud,
    servers: list[tuple[int | None, bool, str, str | None, VmState, int]],
    size: int,
    sort: tuple[SortKey, ...],
    conditions: list[Any],
    slack: int,
    down: tuple[int, int] | None,
) -> None:
    """The whole list: of each server the row of its own cell, sorted by ourselves. From every marker, also with a cell down."""
    cloud = module_cloud
    cloud.empty()
    everybody: list[Listed] = []
    for number, (home, copied, name, host, state, at) in enumerate(servers):
        fields = {"at": at, "display_name": name, "metadata": {"odd": "yes" if number % 2 else "no"}}
        if home is None:
            instance = cloud.build_request(f"s{number}", **fields)
        else:
            instance = cloud.server(f"s{number}", home, **fields, host=host, vm_state=state)
            if copied:
                cloud.copy(instance, 1 - home)
        everybody.append(Listed.of(instance, None if home is None else cloud.uuids[home], []))
    whole = ServerQuery("p", 1000, conditions, sort)
    sort_rows(whole, everybody)
    fitting = [server for server in everybody if whole.matches(server)]
    for marker in [None, *everybody]:
        behind = [server for server in fitting if marker is None or after(whole, server, key_of(whole, marker))]
        query = ServerQuery("p", size, conditions, sort, None if marker is None else marker.uuid)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(streams, "SLACK", slack)
            patched.setattr(streams, "FEWEST_TO_LOOK_AT", slack)
            patched.setattr(listing, "SLACK", slack)
            if down is not None:
                _break(cloud, patched, *down)
            page = listing._of_all_cells(cloud.cells, query)
        dead = {cell.uuid for cell in page.down}
        answered = [server for server in behind if server.cell_uuid not in dead]
        shown = [(row.uuid, row.cell_uuid) for row in page.servers if row.cell_uuid not in dead]
        assert shown == [(server.uuid, server.cell_uuid) for server in answered][: len(shown)]
        if not dead:
            assert len(shown) == min(size, len(behind))
            assert page.more == (len(behind) > size)


def _break(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, down: int, from_question: int) -> None:
    """A cell that does not answer, from one of its questions on."""
    read, asked = listing._read_cell, Counter[str]()

    def failing(cell_uuid: str, *arguments: Any) -> Any:
        asked[cell_uuid] += 1
        if cell_uuid == cloud.uuids[down] and asked[cell_uuid] >= from_question:
            raise errors.DatabaseFailed("down")
        return read(cell_uuid, *arguments)

    monkeypatch.setattr(listing, "_read_cell", failing)
