"""Pages made of mappings are those that asking all cells makes, and only the cells of a page are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway import errors
from causeway.model.instance import Instance
from causeway.store import listing, mapped_pages, mapping_facts, server_rows
from causeway.store.api import build_requests, mappings
from causeway.store.cell import instances
from causeway.store.conditions import ChangedSince, Deleted, HasStatus, OneOf
from causeway.store.database import statements
from causeway.store.listing import NEWEST_FIRST, Page, ServerQuery, SortKey, list_servers
from tests.unit.store.listed_cloud import ALIVE, START, Cloud, Interleaved, writes_of_a_move

OLDEST_FIRST = (SortKey("created_at"),)


class MappedCloud(Cloud):
    """Its servers are also deleted, and mappings note that."""

    def delete(self, instance: Instance, cell: int, *, noted: bool) -> None:
        instances.soft_delete(self.database(self.uuids[cell]), instance.uuid)
        mappings.queue_for_delete(self.api, instance.uuid)
        if noted:
            mapping_facts.note_deleted(self.cells)

    def deleted_of(self, instance: Instance) -> bool | None:
        return mappings.get(self.api, instance.uuid).deleted


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MappedCloud]:
    cloud = MappedCloud(tmp_path_factory.mktemp("cloud"))
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(module_cloud: MappedCloud) -> MappedCloud:
    module_cloud.empty()
    return module_cloud


def names(page: Page | None) -> list[str]:
    assert page is not None, "all cells were asked"
    return [row.instance.display_name for row in page.servers]


def counted(work: Callable[[], Any]) -> dict[str, int]:
    before = statements.snapshot()
    work()
    return dict(statements.snapshot() - before)


class TestWhoIsAsked:
    def test_only_the_cell_that_holds_the_page_is_asked(self, cloud: MappedCloud) -> None:
        for number in range(30):
            cloud.server(f"s{number:02}", number // 15, at=number)
        assert counted(lambda: cloud.names(limit=3)) == {"api": 2, "cell2": 1}
        marker = cloud.instance("s14").uuid
        assert counted(lambda: cloud.names(limit=3, marker=marker)) == {"api": 3, "cell1": 1}

    def test_a_cell_is_asked_for_the_rows_of_the_page_and_no_more(
        self, cloud: MappedCloud, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(100):
            cloud.server(f"s{number:03}", number % 2, at=number)
        read: list[str] = []
        load = server_rows.load

        def counting(cell_uuid: str, *rest: Any) -> Any:
            rows = load(cell_uuid, *rest)
            read.extend(row.instance.uuid for row in rows)
            return rows

        monkeypatch.setattr(mapped_pages, "load", counting)
        assert len(cloud.names(limit=20)) == 20
        assert len(read) == len(set(read)) == 20 + 1 + mapped_pages.SLACK

    def test_no_cell_is_asked_for_a_project_without_servers(self, cloud: MappedCloud) -> None:
        cloud.server("other", 0, project_id="q")
        assert counted(lambda: cloud.names()) == {"api": 1}

    def test_build_requests_are_read_if_there_is_one_on_the_page(self, cloud: MappedCloud) -> None:
        cloud.server("old", 0, at=1)
        cloud.build_request("new", at=2)
        assert names(mapped_pages.read(cloud.cells, ServerQuery("p", 10, [ALIVE]))) == ["new", "old"]

    @pytest.mark.parametrize(
        "query",
        [
            {"conditions": []},
            {"conditions": [Deleted(True)]},
            {"conditions": [ChangedSince(START)]},
            {"conditions": [ALIVE, HasStatus(())]},
            {"conditions": [ALIVE, OneOf("host", ("h",))]},
            {"conditions": [ALIVE], "sort": (SortKey("display_name"),)},
        ],
    )
    def test_all_cells_for_what_mappings_do_not_have(self, cloud: MappedCloud, query: dict[str, Any]) -> None:
        assert mapped_pages.read(cloud.cells, ServerQuery("p", 10, **query)) is None


class TestDeleted:
    def test_the_row_has_the_last_word_until_the_mapping_knows(self, cloud: MappedCloud) -> None:
        servers = [cloud.server(f"s{number:02}", number % 2, at=number) for number in range(40)]
        for number, server in list(enumerate(servers))[5:]:
            cloud.delete(server, number % 2, noted=False)
        query = ServerQuery("p", 2, [ALIVE])
        assert names(mapped_pages.read(cloud.cells, query)) == ["s04", "s03"]
        mapping_facts.note_deleted(cloud.cells)
        assert [cloud.deleted_of(server) for server in servers] == [False] * 5 + [True] * 35
        assert names(mapped_pages.read(cloud.cells, query)) == ["s04", "s03"]
        assert counted(lambda: cloud.names(limit=2)) == {"api": 2, "cell1": 1, "cell2": 1}

    def test_a_server_that_is_only_to_be_deleted_is_listed(self, cloud: MappedCloud) -> None:
        server = cloud.server("s", 0)
        mappings.queue_for_delete(cloud.api, server.uuid)
        mapping_facts.note_deleted(cloud.cells)
        assert cloud.deleted_of(server) is False
        assert cloud.names() == ["s"]

    def test_a_mapping_that_goes_to_a_living_row_is_living(self, cloud: MappedCloud) -> None:
        server = cloud.server("s", 0)
        cloud.copy(server, 1)
        cloud.delete(server, 0, noted=True)
        assert cloud.deleted_of(server) is True
        cloud.switch(server, 0, 1)
        assert cloud.deleted_of(server) is False


class TestDownCells:
    @pytest.fixture
    def broken(self, cloud: MappedCloud, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(40):
            cloud.server(f"s{number:02}", number // 20, at=number)
        down = cloud.database(cloud.uuids[0])

        def fail(*_: Any) -> Any:
            raise errors.DatabaseFailed("down")

        for name in ("read", "ping_anew"):
            monkeypatch.setattr(down, name, fail)

    @pytest.mark.usefixtures("broken")
    def test_a_page_of_it_says_so(self, cloud: MappedCloud) -> None:
        page = list_servers(cloud.cells, ServerQuery("p", 25, [ALIVE]))
        assert [cell.name for cell in page.down] == ["cell1"]
        assert len(page.servers) == 20

    @pytest.mark.usefixtures("broken")
    def test_who_lists_all_gets_it_on_the_first_page(self, cloud: MappedCloud) -> None:
        page = list_servers(cloud.cells, ServerQuery("p", 5, [ALIVE], lists_down_cells=True))
        assert [cell.name for cell in page.down] == ["cell1"]

    @pytest.mark.usefixtures("broken")
    def test_a_page_of_others_is_whole(self, cloud: MappedCloud) -> None:
        page = list_servers(cloud.cells, ServerQuery("p", 5, [ALIVE]))
        assert not page.down
        assert names(page) == ["s39", "s38", "s37", "s36", "s35"]


SORTS = [
    NEWEST_FIRST,
    OLDEST_FIRST,
    (SortKey("uuid", descending=True),),
    (SortKey("user_id"), SortKey("created_at", descending=True)),
    (SortKey("project_id", descending=True), SortKey("created_at")),
]
CONDITIONS: list[list[Any]] = [
    [ALIVE],
    [OneOf("user_id", ("u1",)), ALIVE],
    [ALIVE, OneOf("project_id", ("p", "q"))],
    [ALIVE, OneOf("created_at", (START + timedelta(seconds=1),))],
]
# home, copy elsewhere, deleted, noted, seconds, project, user
SERVERS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, None]),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.integers(0, 3),
        st.sampled_from(["p", "q"]),
        st.sampled_from(["u1", "u2"]),
    ),
    max_size=12,
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    servers=SERVERS,
    size=st.integers(1, 6),
    sort=st.sampled_from(SORTS),
    conditions=st.sampled_from(CONDITIONS),
    project=st.sampled_from(["p", None]),
)
def test_pages_are_those_that_all_cells_make(
    module_cloud: MappedCloud,
    servers: list[tuple[int | None, bool, bool, bool, int, str, str]],
    size: int,
    sort: tuple[SortKey, ...],
    conditions: list[Any],
    project: str | None,
) -> None:
    """For servers in several cells, hidden copies, deleted ones, equal times; from every marker, deleted ones too."""
    cloud = module_cloud
    cloud.empty()
    for number, (home, copied, deleted, noted, at, of_project, user) in enumerate(servers):
        fields = {"at": at, "project_id": of_project, "user_id": user}
        if home is None:
            if of_project == "p":
                cloud.build_request(f"s{number}", **fields)
            continue
        server = cloud.server(f"s{number}", home, **fields)
        if copied:
            cloud.copy(server, 1 - home)
        if deleted:
            cloud.delete(server, home, noted=noted)
    with cloud.api.read() as connection:
        marks = connection.execute(
            mappings.TABLE.select().where(mappings.TABLE.c.project_id.in_(["p", "q"] if project is None else [project]))
        ).all()
    for marker in [None, *(row.instance_uuid for row in marks)]:
        query = ServerQuery(project, size, conditions, sort, marker, tags=True, volumes=True)
        page, slow = mapped_pages.read(cloud.cells, query), listing._of_all_cells(cloud.cells, query)
        assert page == slow


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(
    schedule=st.lists(st.integers(0, 4), max_size=10),
    home=st.integers(0, 1),
    way=st.sampled_from(["confirm", "revert"]),
)
def test_a_moving_server_is_listed_exactly_once(
    module_cloud: MappedCloud, schedule: list[int], home: int, way: str
) -> None:
    """Whatever part of a move happens between the reads - all of it and the confirm, too."""
    cloud = module_cloud
    cloud.empty()
    server = cloud.server("moving", home, at=5)
    cloud.server("first", 0, at=9)
    cloud.server("last", 1, at=1)
    writes = writes_of_a_move(cloud, server, home, way)
    with pytest.MonkeyPatch.context() as monkeypatch:
        _between_the_reads(cloud, monkeypatch, schedule, writes)
        assert names(mapped_pages.read(cloud.cells, ServerQuery("p", 10, [ALIVE]))) == ["first", "moving", "last"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(schedule=st.lists(st.integers(0, 2), max_size=8))
def test_a_server_that_gets_its_cell_is_listed_exactly_once(module_cloud: MappedCloud, schedule: list[int]) -> None:
    from causeway.store.api import build_requests

    cloud = module_cloud
    cloud.empty()
    server = cloud.build_request("new", at=3)
    cloud.server("old", 1, at=1)

    def hand_over() -> None:
        with cloud.api.write() as connection:
            mappings.set_cell_in(connection, server.uuid, cloud.uuids[0], expected=None)
            build_requests.delete_in(connection, server.uuid)

    with pytest.MonkeyPatch.context() as monkeypatch:
        _between_the_reads(cloud, monkeypatch, schedule, [lambda: cloud.insert(server, 0), hand_over])
        assert names(mapped_pages.read(cloud.cells, ServerQuery("p", 10, [ALIVE]))) == ["new", "old"]


def _between_the_reads(
    cloud: MappedCloud, monkeypatch: pytest.MonkeyPatch, schedule: list[int], writes: list[Callable[[], None]]
) -> None:
    steps = Interleaved(cloud, monkeypatch, schedule, writes)
    for name in ("_candidates", "_rows_of", "_settle"):
        monkeypatch.setattr(mapped_pages, name, steps.before(getattr(mapped_pages, name)))
    find_all, load = build_requests.find_all, server_rows.load
    monkeypatch.setattr(build_requests, "find_all", steps.before(find_all))
    monkeypatch.setattr(mapped_pages, "load", steps.before(load))
    # One thread, in either order.

    def ask(cell_uuids: Any, question: Any) -> Any:
        from causeway.store.cells import Answers

        order = list(cell_uuids) if steps.flip() else list(cell_uuids)[::-1]
        return Answers({one: question(cloud.cells.mapping(one), cloud.database(one)) for one in order}, [])

    monkeypatch.setattr(cloud.cells, "ask", ask)
