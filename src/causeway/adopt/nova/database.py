"""One database of Nova's. Its sessions can't write, unless something is handed back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from alembic.runtime.migration import MigrationContext
from sqlalchemy import event

from causeway import errors
from causeway.store.database import Database, parts
from causeway.store.foreign_schema import NOVA_API_REVISIONS, NOVA_CELL_REVISIONS
from causeway.store.schema import Kind

Row = Mapping[str, Any]
# The last character of three bytes, and what stands for one that can't be kept.
_WIDEST, _INSTEAD = "\uffff", "\ufffd"
_READ_ONLY = {
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "postgresql": "SET default_transaction_read_only = on",
    "sqlite": "PRAGMA query_only = 1",
}


class NovaDatabase:
    """``kind``: "api" or "cell". Raises Misconfigured if it is not Nova's, or of a release that is not known."""

    def __init__(self, url: str, name: str, kind: Kind, *, writable: bool = False) -> None:
        self.name = name
        self._database = Database(url, f"Nova's {name}")
        if not writable:
            event.listen(self._database.engine, "connect", self._refuse_writes)
        self._columns: dict[str, set[str]] = {}
        try:
            with self._database.read() as connection:
                revisions = MigrationContext.configure(connection).get_current_heads()
                # All at once: Nova has a hundred tables.
                for (_schema, table), columns in sa.inspect(connection).get_multi_columns().items():
                    self._columns[table] = {column["name"] for column in columns}
            #: of its schema
            self.revision = _known(revisions, kind, self._columns, name)
        except BaseException:
            self.close()
            raise

    def _refuse_writes(self, connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(_READ_ONLY[self._database.url.get_backend_name()])
        cursor.close()
        # PostgreSQL's driver has begun a transaction.
        connection.commit()

    def has(self, table: sa.TableClause, column: str | None = None) -> bool:
        """Whether its release has the table, or the column."""
        columns = self._columns.get(table.name, set())
        return bool(columns) if column is None else column in columns

    def rows(self, table: sa.TableClause, *where: sa.ColumnElement[bool]) -> list[Row]:
        """The rows of a table that is small, by id. Columns that the release lacks are None; no table: no row."""
        if not self.has(table):
            return []
        with self._database.read() as connection:
            return [self._whole(row, table) for row in connection.execute(self._select(table).where(*where)).mappings()]

    def newest(self, table: sa.TableClause, count: int = 20) -> list[Row]:
        """The newest rows of a table, by their numbers."""
        if not self.has(table):
            return []
        select = self._select(table).order_by(None).order_by(table.c.id.desc()).limit(count)
        with self._database.read() as connection:
            return [self._whole(row, table) for row in connection.execute(select).mappings()]

    def count(self, table: sa.TableClause, *where: sa.ColumnElement[bool]) -> int:
        if not self.has(table):
            return 0
        with self._database.read() as connection:
            return connection.scalar(sa.select(sa.func.count()).select_from(table).where(*where)) or 0

    def newest_change(self, table: sa.TableClause) -> tuple[int, datetime | None]:
        """The number of rows, and when one was changed last."""
        with self._database.read() as connection:
            row = connection.execute(
                sa.select(sa.func.count(), sa.func.max(table.c.updated_at)).select_from(table)
            ).one()
        return row[0], row[1]

    def batches(self, table: sa.TableClause, size: int, *where: sa.ColumnElement[bool]) -> Iterator[list[Row]]:
        """The rows of a table that may be large, by id, ``size`` at a time."""
        last = 0
        while True:
            with self._database.read() as connection:
                select = self._select(table).where(table.c.id > last, *where).limit(size)
                found = [self._whole(row, table) for row in connection.execute(select).mappings()]
            if found:
                yield found
            if len(found) < size:
                return
            last = found[-1]["id"]

    def known(self, table: sa.TableClause, values: Row) -> dict[str, Any]:
        """Those of the values whose columns its release has, as they can be kept there."""
        return {name: self.kept(value) for name, value in values.items() if self.has(table, name)}

    def kept(self, value: Any) -> Any:
        """A value, or a text as its tables keep it: Nova's own in MySQL and MariaDB have no characters of four bytes."""
        if isinstance(value, str) and self._is_narrow:
            return "".join(each if each <= _WIDEST else _INSTEAD for each in value)
        return value

    @cached_property
    def _is_narrow(self) -> bool:
        if self._database.url.get_backend_name() not in ("mysql", "mariadb"):
            return False
        found = sa.text(
            "SELECT character_set_name FROM information_schema.columns WHERE table_schema = DATABASE()"
            " AND table_name IN ('instances', 'request_specs') AND column_name IN ('display_name', 'spec')"
        )
        with self._database.read() as connection:
            return connection.scalar(found) in ("utf8", "utf8mb3")

    def write(self) -> AbstractContextManager[sa.Connection]:
        """One transaction, of a database that was opened as writable."""
        return self._database.write()

    def rows_of(self, table: sa.TableClause, key: str, values: Iterable[Any]) -> dict[Any, list[Row]]:
        """The rows whose column ``key`` has one of ``values``, by that: those that are not deleted, by id."""
        found: dict[Any, list[Row]] = {}
        if not self.has(table):
            return found
        with self._database.read() as connection:
            for part in parts(list(values)):
                select = self._select(table).where(table.c[key].in_(part))
                if self.has(table, "deleted"):
                    select = select.where(table.c.deleted == 0)
                for row in connection.execute(select).mappings():
                    found.setdefault(row[key], []).append(self._whole(row, table))
        return found

    def _select(self, table: sa.TableClause) -> sa.Select[Any]:
        known = [column for column in table.columns if self.has(table, column.name)]
        select = sa.select(*known)
        return select.order_by(table.c.id) if "id" in table.columns else select

    def _whole(self, row: sa.RowMapping, table: sa.TableClause) -> Row:
        return {column.name: row.get(column.name) for column in table.columns}

    def close(self) -> None:
        self._database.close()


def _known(revisions: Collection[str], kind: Kind, tables: Collection[str], name: str) -> str:
    """The revision of the schema. Raises Misconfigured if it is not one of Nova's that are known."""
    known = NOVA_API_REVISIONS if kind == "api" else NOVA_CELL_REVISIONS
    found = [revision for revision in revisions if revision in known]
    if found:
        return found[0]
    if not {"instance_system_metadata", "flavor_extra_specs"}.isdisjoint(tables):
        raise errors.Misconfigured(
            f"Nova's database {name} has a schema of revision {', '.join(revisions) or 'none'}, which is not known: it is older "
            "than Xena (24), or newer than 2026.2 (34), or not synchronized. Nothing was read."
        )
    raise errors.Misconfigured(f"The database {name} is not one of Nova's{' API' if kind == 'api' else ' cells'}.")


__all__ = ["NovaDatabase", "Row"]
