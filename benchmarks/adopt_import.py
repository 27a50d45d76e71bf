"""How long ``causeway adopt import`` takes, and how much memory, for a Nova of many servers.

    .venv/bin/python -W ignore -m benchmarks.adopt_import --servers 100000 --server mariadb

Nova's rows are generated after a server that a real Nova 34 had: with its system metadata, a port, a disk, six actions and two
migrations. They are in SQLite; Causeway's databases are on the server. The network service is not asked: it would get two
requests for each 50 servers.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
import uuid as uuids
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from causeway.adopt.importing import ImportReport, import_cloud
from causeway.adopt.nova import NovaCloud
from causeway.model.host import CellMapping
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.cells import Cells
from causeway.store.database import Database, statements
from tests.integration.database_servers import database_server
from tests.unit.adopt.nova_cloud import ROWS, NovaOnDisk, Row

_MODEL = "b355d05d-2774-4d5a-a0ce-bcb64458de24"
_ACTIONS, _MIGRATIONS, _AT_ONCE = 6, 2, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=100_000)
    parser.add_argument("--server", choices=("sqlite", "mariadb", "postgresql"), default="mariadb")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="adopt-")))
        new_url: Callable[[str], str] = lambda name: f"sqlite:///{folder}/{name}.sqlite"  # noqa: E731
        if given.server != "sqlite":
            new_url = cleanup.enter_context(database_server(given.server))
        nova = NovaOnDisk(folder)
        began = time.monotonic()
        add_servers(nova, given.servers)
        print(f"{given.servers} servers generated in {time.monotonic() - began:.0f} s", flush=True)
        api = cleanup.enter_context(closing(Database(new_url("api"), "API")))
        schema.sync(api, "api")
        for cell in ROWS["api"]["cell_mappings"]:
            url = new_url(cell["name"])
            with closing(Database(url, cell["name"])) as database:
                schema.sync(database, "cell")
            cell_records.save_cell(api, CellMapping(cell["uuid"], cell["name"], "fake:/", url))
        cells = cleanup.enter_context(closing(Cells(api)))
        found = [measure(name, nova, api, cells) for name in ("first", "second")]
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2))


def measure(name: str, nova: NovaOnDisk, api: Database, cells: Cells) -> dict[str, Any]:
    """Imports once. Memory is the most that the process ever had, before and after."""
    had = _most_mib()
    before, began, cpu = statements.snapshot().total(), time.monotonic(), time.process_time()
    with NovaCloud([nova.conf]) as cloud:
        report: ImportReport = import_cloud(cloud, api, cells, lambda _servers: None)
    seconds, counts = time.monotonic() - began, report.of("server")
    found = {
        "import": name,
        "servers": counts.read,
        "written": counts.written,
        "unchanged": report.is_unchanged,
        "seconds": round(seconds, 1),
        "servers_in_an_hour": round(counts.read / seconds * 3600),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "statements": statements.snapshot().total() - before,
        "most_mib": [had, _most_mib()],
    }
    print(found, flush=True)
    return found


def _most_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def add_servers(nova: NovaOnDisk, count: int) -> None:
    """Adds servers to cell1 that are like the model, with numbers of their own."""
    of_cell = (
        "instances", "instance_extra", "instance_system_metadata", "instance_metadata", "instance_info_caches", "tags",
        "virtual_interfaces", "block_device_mapping", "instance_actions",
    )  # fmt: skip
    models: dict[str, list[Row]] = {
        table: [
            row
            for row in ROWS["cell1"].get(table, [])
            if _MODEL in (row.get("uuid"), row.get("instance_uuid"), row.get("resource_id"))
        ]
        for table in of_cell
    }
    (action,) = models["instance_actions"]
    models["instance_actions_events"] = [
        r for r in ROWS["cell1"]["instance_actions_events"] if r["action_id"] == action["id"]
    ]
    confirmed = next(row for row in ROWS["cell1"]["migrations"] if row["status"] == "confirmed")
    for first in range(0, count, _AT_ONCE):
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        for number in range(first, min(first + _AT_ONCE, count)):
            _add(rows, models, confirmed, 1000 + number)
        for table in ("instance_mappings", "request_specs"):
            nova.add("api", table, *rows.pop(table))
        for table, listed in rows.items():
            nova.add("cell1", table, *listed)


def _add(rows: dict[str, list[Row]], models: dict[str, list[Row]], migration: Row, number: int) -> None:
    uuid = str(uuids.uuid4())
    for table in ("instances", "instance_extra", "instance_info_caches"):
        rows[table] += [_owned(row, uuid) | {"id": number} for row in models[table]]
    for table in ("instance_system_metadata", "instance_metadata", "virtual_interfaces"):
        rows[table] += [_owned(row, uuid, new_id=False) for row in models[table]]
    rows["tags"] += [{**row, "resource_id": uuid} for row in models["tags"]]
    rows["block_device_mapping"] += [
        _owned(row, uuid, new_id=False) | {"uuid": str(uuids.uuid4())} for row in models["block_device_mapping"]
    ]
    for index in range(_ACTIONS):
        action = number * _ACTIONS + index
        rows["instance_actions"] += [
            _owned(row, uuid) | {"id": action, "request_id": f"req-{uuids.uuid4()}"}
            for row in models["instance_actions"]
        ]
        rows["instance_actions_events"] += [
            {key: value for key, value in row.items() if key != "id"} | {"action_id": action}
            for row in models["instance_actions_events"]
        ]
    rows["migrations"] += [
        _owned(migration, uuid, new_id=False) | {"uuid": str(uuids.uuid4()), "instance_uuid": uuid}
        for _each in range(_MIGRATIONS)
    ]
    for table in ("instance_mappings", "request_specs"):
        (model,) = (row for row in ROWS["api"][table] if row["instance_uuid"] == _MODEL)
        rows[table].append(_owned(model, uuid) | {"id": number})


def _owned(row: Row, uuid: str, *, new_id: bool = True) -> Row:
    """The row with another server's uuid wherever it has the model's."""
    return {
        key: value.replace(_MODEL, uuid) if isinstance(value, str) else value
        for key, value in row.items()
        if new_id or key != "id"
    }


if __name__ == "__main__":
    main()
