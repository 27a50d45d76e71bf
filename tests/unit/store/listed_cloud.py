"""What tests of lists share: an API database and two cells, and servers that move between their reads."""

from __future__ import annotations

import json
import uuid as uuids
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.model.states import VmState
from causeway.store import listing, schema
from causeway.store.api import build_requests, mappings
from causeway.store.api import cells as cell_records
from causeway.store.cell import block_devices, copies, instances
from causeway.store.cells import Cells
from causeway.store.conditions import Deleted, Predicate
from causeway.store.database import Database, utcnow
from causeway.store.listed import JSON_COLUMNS, Listed
from causeway.store.listing import ServerQuery, list_servers

FLAVOR = Flavor("1", "small", 1, 128, 1)
START = datetime(2026, 1, 1)
ALIVE = Deleted(False)
MANY_TAGS = sorted(f"{number:02}{'é' * 58}" for number in range(50))


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
            instance.uuid,
            instance.project_id,
            instance.user_id,
            instance.created_at or START,
            None if cell is None else self.uuids[cell],
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
                listing.OPERATIONS.insert(),
                {
                    "id": str(uuids.uuid4()),
                    "migration_uuid": instance.uuid,
                    "instance_uuid": instance.uuid,
                    "recipe": "resize",
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
                listing.OPERATIONS.update()
                .where(listing.OPERATIONS.c.instance_uuid == instance.uuid)
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


class Interleaved:
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


def make_unreachable(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """No new connection to a database is made any more."""

    def refuse() -> None:
        raise errors.DatabaseFailed("down")

    monkeypatch.setattr(database, "ping_anew", refuse)


def break_cell(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, down: int, from_question: int) -> None:
    """A cell that does not answer, from one of its questions on."""
    read, asked = listing._read_cell, Counter[str]()

    def failing(cell_uuid: str, *arguments: Any) -> Any:
        asked[cell_uuid] += 1
        if cell_uuid == cloud.uuids[down] and asked[cell_uuid] >= from_question:
            make_unreachable(cloud.cells.open(cloud.cells.mapping(cell_uuid)), monkeypatch)
            raise errors.DatabaseFailed("down")
        return read(cell_uuid, *arguments)

    monkeypatch.setattr(listing, "_read_cell", failing)
