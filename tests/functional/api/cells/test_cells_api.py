"""``/os-causeway/cells`` and ``/os-causeway/cleanups``: what is in the cells, also of those that are down."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from sqlalchemy import event

from causeway.model.host import CELL0_UUID, CellMapping
from causeway.model.instance import Instance
from causeway.model.missed import Missed, MissedOrder
from causeway.store.api import cells as cell_records
from causeway.store.api import cleanups, mappings
from causeway.store.cell import hosts
from causeway.store.database import utcnow


def by_name(answer: Any) -> dict[str, Any]:
    assert answer.status == 200, answer.text
    return {cell["name"]: cell for cell in answer.json["cells"]}


def change_host(cloud: Any, name: str, cell: str, **changes: Any) -> None:
    (service,) = hosts.list_services(cloud.cell(cell), host=name, binary="nova-compute")
    hosts.update_service(cloud.cell(cell), service.uuid, **changes)


@pytest.fixture
def hosts_and_servers(cloud: Any) -> None:
    """cell1: three hosts, one is down, one disabled; three servers, one of which is being deleted. cell2: a host."""
    for name, cell in (("a", "cell1"), ("b", "cell1"), ("c", "cell1"), ("d", "cell2")):
        cloud.host(name, cell)
    change_host(cloud, "b", "cell1", last_seen_up=utcnow() - timedelta(hours=1))
    change_host(cloud, "c", "cell1", disabled=True)
    servers = [cloud.server("cell1", host="a", node="a") for _ in range(3)]
    mappings.queue_for_delete(cloud.services.api, servers[0].uuid)
    # Not scheduled yet: in no cell.
    with cloud.services.api.write() as connection:
        unscheduled = mappings.InstanceMapping(str(uuid.uuid4()), "project", "user", utcnow())
        mappings.insert_in(connection, unscheduled)
    # Conductors of cells are services, and no hosts.
    hosts.report_service(cloud.cell("cell2"), "conductor", "nova-conductor", "conductor", 2)


@pytest.mark.usefixtures("hosts_and_servers")
def test_cells_are_shown_with_their_hosts_and_servers(admin: Any, cloud: Any) -> None:
    listed = by_name(admin.get("/os-causeway/cells"))
    assert list(listed) == ["cell0", "cell1", "cell2"]
    assert listed["cell1"] == {
        "id": cloud.cell_uuids["cell1"],
        "name": "cell1",
        "disabled": False,
        "answers": True,
        "hosts": {"total": 3, "up": 2, "down": 1, "disabled": 1},
        "servers": 2,
    }
    assert (listed["cell2"]["hosts"], listed["cell2"]["servers"]) == (
        {"total": 1, "up": 1, "down": 0, "disabled": 0},
        0,
    )
    assert listed["cell0"]["id"] == CELL0_UUID
    for name in ("cell1", cloud.cell_uuids["cell1"]):
        assert admin.get(f"/os-causeway/cells/{name}").json == {"cell": listed["cell1"]}


def test_a_cell_is_shown_at_once_also_if_it_is_disabled(admin: Any, cloud: Any) -> None:
    known = {cell.name: cell for cell in cloud.services.cells.mappings()}
    fresh = CellMapping(str(uuid.uuid4()), "cell3", "none:///", known["cell2"].database_connection, disabled=True)
    cell_records.save_cell(cloud.services.api, fresh)
    shown = admin.get("/os-causeway/cells/cell3").json["cell"]
    assert (shown["id"], shown["disabled"], shown["answers"]) == (fresh.uuid, True, True)
    assert "cell3" in by_name(admin.get("/os-causeway/cells"))


@pytest.mark.usefixtures("hosts_and_servers")
@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_a_cell_that_is_down_is_listed_as_such(admin: Any, cloud: Any, over: Event, how: str) -> None:
    known = by_name(admin.get("/os-causeway/cells"))
    if how == "hangs":
        # The cells that are well must answer in this time, however busy the machine is.
        cloud.services.cells.timeout = 2.0
        for engine in (cloud.cell("cell1").engine, cloud.cell("cell1").pinger):
            event.listen(engine, "before_cursor_execute", lambda *_: over.wait(60) and None)
    else:
        nowhere = CellMapping(cloud.cell_uuids["cell1"], "cell1", "none:///", "sqlite:////nowhere/at/all.sqlite")
        cell_records.save_cell(cloud.services.api, nowhere)
        cloud.services.cells.refresh()
    listed = by_name(admin.get("/os-causeway/cells"))
    assert listed["cell1"]["answers"] is False
    assert listed["cell1"]["hosts"] == {"total": 3, "up": None, "down": None, "disabled": None}
    assert listed["cell1"]["servers"] == 2
    assert listed["cell2"] == known["cell2"]
    # Nobody waits for it again.
    cloud.services.cells.timeout = 60.0
    assert admin.get("/os-causeway/cells/cell1").json["cell"] == listed["cell1"]
    assert admin.get("/os-causeway/cells/cell2").json["cell"] == known["cell2"]


@pytest.fixture
def over() -> Iterator[Event]:
    found = Event()
    yield found
    found.set()


def test_who_may_not_look_and_what_is_not_there(admin: Any, api: Any) -> None:
    for path in ("/os-causeway/cells", "/os-causeway/cells/cell1", "/os-causeway/cleanups"):
        assert api.get(path).status == 403
    answer = admin.get("/os-causeway/cells/cell9")
    assert (answer.status, answer.message) == (404, "Cell cell9 could not be found.")


def test_what_hosts_are_still_to_clean_is_listed(admin: Any, cloud: Any, server: Instance) -> None:
    missed = MissedOrder(cleanups.id_of("host1", server.uuid, None, "any"), Missed.DESTROY, server)
    with cloud.services.api.write() as connection:
        cleanups.note_in(connection, "host1", cloud.cell_uuids["cell1"], missed)
    (left,) = admin.get("/os-causeway/cleanups").json["cleanups"]
    assert (left["host"], left["server"], left["missed"]) == ("host1", server.uuid, "destroy_instance")
    assert left["since"]
    assert admin.get("/os-causeway/cleanups?host=host1").json["cleanups"] == [left]
    assert admin.get("/os-causeway/cleanups?host=host2").json["cleanups"] == []
    assert admin.get("/os-causeway/cleanups?server=x").status == 400
