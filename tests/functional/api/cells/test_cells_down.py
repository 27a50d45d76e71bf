"""A cell whose database fails or hangs: its servers are listed with what is known, and nobody waits for it twice.

Source: Compute API guide, "Handling Down Cells"; the timeout is an option here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from sqlalchemy import event

from causeway.model.host import CellMapping
from causeway.model.image import ImageMeta
from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus, VmState
from causeway.scheduler.request import RequestSpec
from causeway.store.api import cells as cell_records
from causeway.store.api import mappings, migrations

# A list that mappings can't make.
ASKS_ALL = "/servers?name=any"
UUID = "11111111-2222-3333-4444-555555555555"

Break = Callable[[str], None]


def become_unreachable(cloud: Any, name: str) -> None:
    """The cell's database can't be reached any more."""
    uuid = cloud.cell_uuids[name]
    cell_records.save_cell(cloud.services.api, CellMapping(uuid, name, "none:///", "sqlite:////nowhere/at/all.sqlite"))
    cloud.services.cells.refresh()


@dataclass
class Hangs:
    """Makes a cell's database take every statement and answer none."""

    cloud: Any
    over: threading.Event = field(default_factory=threading.Event)
    taken: list[str] = field(default_factory=list)

    def __call__(self, name: str) -> None:
        # The cells that are well must answer in this time, however busy the machine is.
        self.cloud.services.cells.timeout = 2.0
        for engine in (self.cloud.cell(name).engine, self.cloud.cell(name).pinger):
            event.listen(engine, "before_cursor_execute", self._wait)

    def _wait(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.taken.append(statement)
        self.over.wait(60)


@pytest.fixture
def hang(cloud: Any) -> Iterator[Hangs]:
    hangs = Hangs(cloud)
    yield hangs
    hangs.over.set()


@pytest.fixture(params=["fails", "hangs"])
def breaks(request: pytest.FixtureRequest, cloud: Any, hang: Hangs) -> Break:
    return hang if request.param == "hangs" else lambda name: become_unreachable(cloud, name)


def test_the_listing_continues_and_names_what_it_can_not_show(api: Any, cloud: Any, breaks: Break) -> None:
    here, there = cloud.server("cell1", display_name="here"), cloud.server("cell2", display_name="there")
    breaks("cell2")
    listed = {server["id"]: server for server in api.get("/servers/detail", version="2.69").json["servers"]}
    assert listed[here.uuid]["status"] == "ACTIVE"
    assert listed[there.uuid].keys() == {"id", "status", "tenant_id", "created", "links"}
    assert listed[there.uuid]["status"] == "UNKNOWN"
    brief = {server["id"]: server for server in api.get("/servers", version="2.69").json["servers"]}
    assert brief[there.uuid].keys() == {"id", "status", "links"}
    # Older clients and lists with conditions get what is there.
    for path, version in (("/servers", "2.68"), ("/servers?name=e", "2.69")):
        assert [server["id"] for server in api.get(path, version=version).json["servers"]] == [here.uuid]


def test_nobody_waits_twice_for_a_cell_that_hangs(api: Any, cloud: Any, hang: Hangs) -> None:
    cloud.server("cell2")
    hang("cell2")
    assert api.get("/servers").json["servers"][0]["status"] == "UNKNOWN"
    asked = list(hang.taken)
    assert asked
    # Only the cell that answers is waited for now, and forty lists at once may take longer.
    cloud.services.cells.timeout = 60.0
    with ThreadPoolExecutor(20, thread_name_prefix="lister") as pool:
        # More lists than there are threads to ask with.
        answers = list(pool.map(lambda _number: api.get("/servers/detail"), range(40)))
    assert {answer.status for answer in answers} == {200}
    assert hang.taken == asked


def test_a_cell_that_answers_again_is_seen_again(api: Any, cloud: Any) -> None:
    server = cloud.server("cell2")
    over = threading.Event()
    cloud.services.cells.timeout = 2.0
    engines = (cloud.cell("cell2").engine, cloud.cell("cell2").pinger)
    wait = lambda *_: over.wait(60) and None  # noqa: E731
    for engine in engines:
        event.listen(engine, "before_cursor_execute", wait)
    assert api.get("/servers").json["servers"][0]["status"] == "UNKNOWN"
    for engine in engines:
        event.remove(engine, "before_cursor_execute", wait)
    over.set()
    end = time.monotonic() + 10
    while "name" not in api.get("/servers").json["servers"][0]:
        assert time.monotonic() < end
    assert api.get(f"/servers/{server.uuid}").json["server"]["status"] == "ACTIVE"


def test_a_server_of_a_cell_that_is_down_is_not_shown_before_2_69(api: Any, cloud: Any, breaks: Break) -> None:
    server = cloud.server("cell2")
    breaks("cell2")
    api.get(ASKS_ALL)
    assert api.get(f"/servers/{server.uuid}", version="2.68").status == 503
    assert api.by("other:elsewhere").get(f"/servers/{server.uuid}").status == 404


def test_a_server_whose_cell_is_down_is_shown_with_what_was_asked_for(api: Any, cloud: Any) -> None:
    server = cloud.server("cell2")
    image = ImageMeta(UUID)
    flavor = replace(server.flavor, extra_specs={"hw:cpu_policy": "shared"})
    spec = RequestSpec(server.uuid, "project", "user", flavor, image=image)
    with cloud.services.api.write() as connection:
        mappings.save_spec_in(connection, server.uuid, spec.to_persist())
    become_unreachable(cloud, "cell2")
    shown = api.get(f"/servers/{server.uuid}", version="2.71").json["server"]
    assert (shown["status"], shown["server_groups"], shown["OS-EXT-AZ:availability_zone"]) == ("UNKNOWN", [], "UNKNOWN")
    (link,) = shown["image"]["links"]
    assert (link["rel"], link["href"].endswith(f"/images/{UUID}")) == ("bookmark", True)
    assert shown["flavor"]["extra_specs"] == {"hw:cpu_policy": "shared"}
    assert api.get(f"/servers/{server.uuid}", version="2.69").json["server"].keys() == shown.keys() - {"server_groups"}


@pytest.mark.parametrize(
    ("action", "caller"),
    [
        ({"resize": {"flavorRef": "1"}}, "user:project"),
        ({"migrate": None}, "admin:admin"),
        ({"confirmResize": None}, "user:project"),
        ({"revertResize": None}, "user:project"),
    ],
)
def test_a_move_out_of_it_is_refused(api: Any, cloud: Any, breaks: Break, action: Any, caller: str) -> None:
    server = cloud.server("cell2")
    breaks("cell2")
    api.get(ASKS_ALL)
    answer = api.by(caller).post(f"/servers/{server.uuid}/action", action)
    assert (answer.status, answer.fault) == (409, "conflictingRequest")
    assert "the cell that it is in does not answer now" in answer.message
    assert api.by("other:elsewhere").post(f"/servers/{server.uuid}/action", action).status == 404
    assert cloud.services.conductor.calls == []


def test_a_move_to_a_host_in_it_is_refused(api: Any, admin: Any, cloud: Any, breaks: Break) -> None:
    cloud.host("here", "cell1")
    cloud.host("there", "cell2")
    server = cloud.server("cell1", host="here", node="here")
    cloud.services.enforcer.allows = lambda *_: True
    breaks("cell2")
    api.get(ASKS_ALL)
    answer = admin.post(f"/servers/{server.uuid}/action", {"migrate": {"host": "there"}})
    assert (answer.status, answer.message) == (
        409,
        "Compute host there is in a cell that does not answer now. Try again later.",
    )
    assert migrations.search(cloud.services.api, instance_uuid=server.uuid) == []


def resized(cloud: Any) -> Any:
    """A server that came from cell2 to cell1."""
    for host, cell in (("there", "cell2"), ("here", "cell1")):
        cloud.host(host, cell)
    server = cloud.server("cell1", host="here", node="here", vm_state=VmState.RESIZED)
    migration = Migration(
        uuid="11111111-1111-1111-1111-111111111111",
        instance_uuid=server.uuid,
        migration_type="resize",
        status=MigrationStatus.FINISHED,
        source_compute="there",
        source_cell=cloud.cell_uuids["cell2"],
        dest_compute="here",
        dest_cell=cloud.cell_uuids["cell1"],
        old_flavor_id=1,
        new_flavor_id=2,
    )
    with cloud.services.api.write() as connection:
        migrations.insert_in(connection, migration)
    return server


def test_a_resize_that_came_from_it_is_not_confirmed_now(api: Any, cloud: Any, breaks: Break) -> None:
    server = resized(cloud)
    breaks("cell2")
    api.get(ASKS_ALL)
    answer = api.post(f"/servers/{server.uuid}/action", {"confirmResize": None})
    assert answer.status == 409 and "the cell that it came from does not answer" in answer.message
    (migration,) = migrations.search(cloud.services.api, instance_uuid=server.uuid)
    assert migration.status is MigrationStatus.FINISHED


def test_a_resize_whose_source_cell_is_down_is_not_reverted(api: Any, cloud: Any, hang: Hangs) -> None:
    server = resized(cloud)
    hang("cell2")
    api.get(ASKS_ALL)
    answer = api.post(f"/servers/{server.uuid}/action", {"revertResize": None})
    assert answer.status == 409 and "the cell that it came from does not answer" in answer.message


def test_what_needs_no_cell_that_is_down_continues(api: Any, admin: Any, cloud: Any, breaks: Break) -> None:
    server = cloud.server("cell1", host="here", node="here")
    cloud.host("here", "cell1")
    breaks("cell2")
    for path in (
        f"/servers/{server.uuid}",
        "/os-services",
        "/os-hypervisors",
        "/os-availability-zone/detail",
        "/os-migrations",
        "/limits",
        "/os-quota-sets/project/detail",
        "/os-simple-tenant-usage",
    ):
        assert admin.get(path).status == 200, path
    assert api.post(f"/servers/{server.uuid}/action", {"os-stop": None}).status == 202


def test_a_new_cell_is_listed_without_a_restart(api: Any, cloud: Any) -> None:
    cells = cloud.services.cells
    api.get(ASKS_ALL)
    cells.max_age = 0.0
    uuid = cloud.cell_uuids["cell2"]
    known = next(cell for cell in cell_records.list_cells(cloud.services.api) if cell.uuid == uuid)
    cell_records.save_cell(cloud.services.api, CellMapping(uuid, "renamed", "none:///", known.database_connection))
    assert "renamed" in [cell.name for cell in cells.mappings()]
