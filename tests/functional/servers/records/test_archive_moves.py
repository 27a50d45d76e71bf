"""Archiving while servers move, and afterwards: nothing of a living server goes, nothing of a deleted one stays."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.model.host import CellMapping
from causeway.store import archive
from causeway.store.api import mappings
from causeway.store.api_tables import ApiBase
from causeway.store.cell import copies
from tests.functional.servers.moves_cloud import Cloud, until


def archive_all(cloud: Cloud) -> dict[str, int]:
    """Archives every cell; cell -> rows of servers moved."""
    return {cell.name: _archive(cloud, cell) for cell in cloud.parts.cells.mappings()}


def _archive(cloud: Cloud, cell: CellMapping) -> int:
    parts, moved = cloud.parts, 0
    while True:
        rows = archive.archive(parts.api_database, parts.cells.database(cell.uuid), cell.uuid, max_rows=1000)
        moved += rows["instances"]
        if not any(rows.values()):
            return moved


def delete(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()


def moves_left(cloud: Cloud, server: Any) -> dict[str, int]:
    """table -> rows of a server in the API database."""
    tables, found = ApiBase.metadata.tables, {}
    moves = sa.select(tables["moves"].c.id).where(tables["moves"].c.instance_uuid == server.id)
    with cloud.parts.api_database.read() as connection:
        for name in ("migrations", "moves", "move_progress"):
            table = tables[name]
            chosen = table.c.move_id.in_(moves) if name == "move_progress" else table.c.instance_uuid == server.id
            found[name] = connection.execute(sa.select(sa.func.count()).select_from(table).where(chosen)).scalar_one()
    return found


@pytest.mark.parametrize("end", ["confirmed", "reverted"])
def test_a_server_in_verify_resize_is_not_archived(cloud: Cloud, end: str) -> None:
    archive_all(cloud)
    server = cloud.boot()
    cloud.resized(server)
    before = cloud.reality(server)
    assert archive_all(cloud) == {"cell0": 0, "cell1": 0, "cell2": 0}
    assert cloud.reality(server) == before
    assert getattr(cloud, end)(server).status == "ACTIVE"
    assert archive_all(cloud) == {"cell0": 0, "cell1": 0, "cell2": 0}
    assert cloud.show(server).status == "ACTIVE"
    if end == "reverted":
        # It may move again into the cell that it left.
        assert cloud.confirmed(cloud.resized(server)).status == "ACTIVE"


def test_a_deleted_server_is_archived_with_its_moves(cloud: Cloud) -> None:
    archive_all(cloud)
    archive.purge_operations(cloud.parts.api_database)
    server = cloud.boot()
    cloud.confirmed(cloud.resized(server))
    delete(cloud, server)
    shown = next(iter(cloud.admin.compute.servers(all_projects=True, deleted=True)))
    assert (shown.id, shown.status) == (server.id, "DELETED")
    assert cloud.actions(server)[-1] == "delete"
    assert archive_all(cloud) == {"cell0": 0, "cell1": 0, "cell2": 1}
    assert not any(copies.exists(cloud.cell(cell), server.id) for cell in ("cell1", "cell2"))
    assert list(cloud.admin.compute.servers(all_projects=True, deleted=True)) == []
    assert list(cloud.admin.compute.migrations(instance_uuid=server.id)) == []
    assert moves_left(cloud, server) == {"migrations": 0, "moves": 0, "move_progress": 0}
    assert archive.purge_operations(cloud.parts.api_database, before=datetime(2000, 1, 1)) == {}
    purged = archive.purge_operations(cloud.parts.api_database)
    assert (purged["migrations"], purged["moves"]) == (1, 4)
    with pytest.raises(Exception, match=server.id):
        mappings.get(cloud.parts.api_database, server.id)


def test_history_is_the_owners_and_tracebacks_are_the_administrators(cloud: Cloud) -> None:
    """2.51: owners see events; 2.62: where (a digest of it); 2.84: what went wrong."""
    server = cloud.boot()
    cloud.without_rounds()
    cloud.fail("status", "/file$", service="image", method="PUT", status=413)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    request_id = cloud.action(server, "resize").request_id
    path = f"/servers/{server.id}/os-instance-actions/{request_id}"
    by_user = cloud.member.compute.get(path, microversion="2.96").json()["instanceAction"]
    by_admin = cloud.admin.compute.get(path, microversion="2.96").json()["instanceAction"]
    assert by_user["message"] == by_admin["message"] and by_user["message"] not in (None, "Error")
    name = "compute_prep_snapshot_based_resize_at_source"
    seen, known = (
        next(event for event in action["events"] if event["event"] == name) for action in (by_user, by_admin)
    )
    assert seen["result"] == "Error" and seen["start_time"] <= seen["finish_time"] and seen["hostId"]
    assert not {"traceback", "host", "details"} & seen.keys()
    assert "Traceback" in known["traceback"] and known["host"].startswith("cell1") and known["details"]
    assert "events" not in cloud.member.compute.get(path, microversion="2.50").json()["instanceAction"]
