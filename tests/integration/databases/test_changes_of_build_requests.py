"""Build requests that are changed while a conductor deletes them, in PostgreSQL and MariaDB: row locks put both in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.store import schema
from causeway.store.api import build_requests, mappings
from causeway.store.database import Database, utcnow

CHANGES = {
    "display_name": "renamed",
    "display_description": "described",
    "hostname": "host",
    "access_ip_v4": "192.0.2.7",
}


def test_every_change_is_in_what_is_deleted_or_comes_too_late_for_it(new_database: Callable[[str], str]) -> None:
    database = Database(new_database("requests"), "api")
    schema.sync(database, "api")
    for number in range(10):
        uuid = f"server-{number}"
        instance = Instance(uuid, "project", "user", "server", Flavor("1", "small", 1, 64, 1), metadata={"a": "b"})
        with database.write() as connection:
            mappings.insert_in(connection, mappings.InstanceMapping(uuid, "project", "user", utcnow()))
            mappings.save_spec_in(connection, uuid, {})
            build_requests.insert_in(connection, build_requests.BuildRequest(uuid, "project", utcnow(), instance))
        start = threading.Barrier(len(CHANGES) + 1)

        def change(name: str, uuid: str = uuid, start: threading.Barrier = start) -> bool:
            start.wait()
            return build_requests.change_server(database, uuid, {name: CHANGES[name]})

        def build(uuid: str = uuid, start: threading.Barrier = start) -> Instance:
            start.wait()
            while True:
                asked = build_requests.asked(database, uuid)
                assert asked is not None and asked.request is not None
                try:
                    with database.write() as connection:
                        assert build_requests.delete_as_read_in(connection, uuid, asked)
                except errors.RequestChanged:
                    continue
                return asked.request.instance

        with ThreadPoolExecutor(len(CHANGES) + 1, thread_name_prefix="change") as pool:
            built, changed = pool.submit(build), dict(zip(CHANGES, pool.map(change, CHANGES), strict=True))
        made = built.result()
        assert {name: getattr(made, name) == value for name, value in CHANGES.items()} == changed
    database.close()
