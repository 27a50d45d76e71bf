"""New databases of single tests, with their schema and nothing in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from causeway.store import schema
from causeway.store.database import Database


@contextmanager
def new_database(folder: Path, kind: schema.Kind, *, synchronous: bool = True) -> Iterator[Database]:
    """One in a file of the folder, open until the block ends. ``synchronous``: see `Database`."""
    with closing(Database(f"sqlite:///{folder}/{kind}.sqlite", kind, synchronous=synchronous)) as database:
        schema.sync(database, kind)
        yield database
