"""New databases of a Causeway, with the cells of the Nova of `nova_cloud`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from causeway.model.host import CellMapping
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.cells import Cells
from causeway.store.database import Database
from tests.unit.adopt.nova_cloud import ROWS

UUIDS = {cell["name"]: str(cell["uuid"]) for cell in ROWS["api"]["cell_mappings"]}


@dataclass
class OurDatabases:
    api: Database
    cells: Cells

    def of_cell(self, name: str) -> Database:
        return self.cells.database(UUIDS[name])


@contextmanager
def our_databases(folder: Path, *, cells: dict[str, str] = UUIDS) -> Iterator[OurDatabases]:
    """``cells``: name -> uuid."""
    with closing(Database(f"sqlite:///{folder}/api.sqlite", "API", synchronous=False)) as api:
        schema.sync(api, "api")
        for name, uuid in cells.items():
            url = f"sqlite:///{folder}/{name}.sqlite"
            with closing(Database(url, name, synchronous=False)) as cell:
                schema.sync(cell, "cell")
            cell_records.save_cell(api, CellMapping(uuid, name, "fake:/", url))
        with closing(Cells(api)) as opened:
            yield OurDatabases(api, opened)
