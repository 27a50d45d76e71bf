"""What must hold, in every kind of database, of where a project's servers are found to be."""

from __future__ import annotations

from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.store.api import accepted, build_requests, cells, mappings, quotas
from causeway.store.api.quotas import Effective, Pending, Places
from causeway.store.database import Database, utcnow


def _map(database: Database, uuid: str, project: str, cell_uuid: str | None) -> None:
    with database.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping(uuid, project, "user", utcnow(), cell_uuid=cell_uuid))


def _request(database: Database, uuid: str, project: str) -> None:
    server = Instance(uuid, project, "user", "server", Flavor("1", "small", 3, 64, 1))
    with database.write() as connection:
        build_requests.insert_in(connection, build_requests.BuildRequest(uuid, project, utcnow(), server))


def limits_and_places_are_read_together(database: Database) -> None:
    for number in (1, 2, 3):
        cells.save_cell(database, CellMapping(f"cell{number}", f"cell{number}", "", ""))
    for number, cell_uuid in enumerate(("cell1", "cell1", "cell3", None)):
        _map(database, f"server{number}", "project", cell_uuid)
    _map(database, "others", "other", "cell2")
    _request(database, "server3", "project")
    _request(database, "others", "other")
    assert quotas.effective(database, "project", "user", places=True) == Effective(
        places=Places([Pending("server3", "user", 3, 64)], frozenset({"cell1", "cell3"}))
    )
    quotas.set_limits(database, quotas.DEFAULT_CLASS, {"cores": 1, "ram": 2})
    quotas.set_limits(database, "project", {"cores": 5})
    quotas.set_limits(database, "project", {"cores": 4}, "user")
    with database.write() as connection:
        accepted.add_in(connection, accepted.of_project("project"), accepted.Total(), {"cores": 7}, {"cores": 9})
    alone, whole = (quotas.effective(database, "project", "user", places=places) for places in (False, True))
    assert (alone.whole, alone.own, alone.accepted.amounts) == ({"cores": 5, "ram": 2}, {"cores": 4}, {"cores": 7})
    assert (whole.whole, whole.own, whole.accepted) == (alone.whole, alone.own, alone.accepted)
    assert alone.places is None and whole.places is not None and whole.places.cells == {"cell1", "cell3"}
    assert quotas.effective(database, "nobody", places=True).places == Places()
