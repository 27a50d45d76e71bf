"""Column types of both schemas, and the conversion between rows and dataclasses."""

from __future__ import annotations

import dataclasses
import itertools
import sqlite3
import typing
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

T = TypeVar("T")

# With fractions of a second, which MariaDB stores only with this type. Paging and history need them.
Time = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


class Bounded(sa.String):
    """Text of a limited length on every database. SQLite stores any length, and would hide errors of the others."""

    def bind_processor(self, dialect: sa.Dialect) -> Callable[[Any], Any] | None:
        return self._check if dialect.name == "sqlite" else super().bind_processor(dialect)

    def _check(self, value: str | None) -> str | None:
        if value is not None and self.length is not None and len(value) > self.length:
            raise sqlite3.DataError(f"value too long for type character varying({self.length}): {value[:40]}...")
        return value

    def coerce_compared_value(self, op: Any, value: Any) -> sa.types.TypeEngine[Any]:  # noqa: ARG002
        """Allows comparing the column with a longer text, which no row has."""
        return sa.String()


def fitting(text: str | None, column: sa.Column[Any]) -> str | None:
    """Truncates an unchecked text to the column's length. Texts of other programs may have any length."""
    return text if text is None else text[: column.type.length]  # type: ignore[attr-defined]


Uuid = Bounded(36)
Name = Bounded(255)
LongText = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


class TextOfJson(sa.ColumnElement[str]):
    """The value under ``key`` of a JSON object in ``column``, for columns that the database computes."""

    inherit_cache = False

    def __init__(self, column: str, key: str) -> None:
        self.column, self.key = column, key


@compiles(TextOfJson, "sqlite")
def _in_sqlite(element: TextOfJson, _compiler: sa.Compiled, **_options: Any) -> str:
    return f"json_extract({element.column}, '$.{element.key}')"


@compiles(TextOfJson, "postgresql")
def _in_postgresql(element: TextOfJson, _compiler: sa.Compiled, **_options: Any) -> str:
    return f"{element.column} ->> '{element.key}'"


@compiles(TextOfJson, "mysql", "mariadb")
def _in_mariadb(element: TextOfJson, _compiler: sa.Compiled, **_options: Any) -> str:
    return f"json_value({element.column}, '$.{element.key}')"


class JsonWith(FunctionElement[Any]):
    """The JSON object in ``column`` with other values under ``keys``; the parameters of their names are texts of JSON.

    Not for PostgreSQL: its type for this refuses values that its columns have, such as texts with NUL.
    """

    name = "json_with"
    type = sa.JSON()
    inherit_cache = True

    def __init__(self, column: sa.Column[Any], keys: Collection[str]) -> None:
        pairs = [(sa.literal(f"$.{key}", sa.Text), sa.bindparam(key, type_=sa.Text)) for key in keys]
        super().__init__(column, *itertools.chain.from_iterable(pairs))


def _json_with(function: str, value: str) -> Callable[..., str]:
    def compile_it(element: JsonWith, compiler: SQLCompiler, **options: Any) -> str:
        column, *pairs = [compiler.process(clause, **options) for clause in element.clauses]
        changed = [each if place % 2 == 0 else value.format(each) for place, each in enumerate(pairs)]
        return f"{function}({', '.join([column, *changed])})"

    return compile_it


compiles(JsonWith, "sqlite")(_json_with("json_set", "json({})"))
compiles(JsonWith, "mysql", "mariadb")(_json_with("JSON_SET", "JSON_EXTRACT({}, '$')"))


def keep_all_of_unicode(metadata: sa.MetaData) -> None:
    """Makes MariaDB store every character, whatever character set its databases have."""
    for table in metadata.tables.values():
        for dialect in ("mysql", "mariadb"):
            table.dialect_kwargs[f"{dialect}_charset"] = "utf8mb4"


class RowMapper(Generic[T]):
    """Maps a dataclass to the columns of the same names. Fields that are not scalars are stored as JSON.

    ``without``: fields that are neither read nor written, so they have their defaults.
    """

    def __init__(self, model: type[T], table: sa.Table, *, without: frozenset[str] = frozenset()) -> None:
        self.model = model
        self.table = table
        hints = typing.get_type_hints(model)
        names = [f.name for f in dataclasses.fields(model)]  # type: ignore[arg-type]
        self.fields = [name for name in names if name in table.c and name not in without]
        self.columns = [table.c[name] for name in self.fields]
        self._json = {name for name in self.fields if isinstance(table.c[name].type, sa.JSON)}
        self._hints = hints

    def to_value(self, name: str, value: Any) -> Any:
        """Converts a field's value for its column."""
        if name in self._json:
            return None if value is None else msgspec.to_builtins(value)
        if isinstance(value, Enum):
            return value.value
        return value

    def to_row(self, thing: T, *, without: frozenset[str] = frozenset({"id"})) -> dict[str, Any]:
        """The values of a new row. The database sets ``id``."""
        return {name: self.to_value(name, getattr(thing, name)) for name in self.fields if name not in without}

    def changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The values of an update. Raises KeyError for an unknown field."""
        unknown = set(changes) - set(self.fields)
        if unknown:
            raise KeyError(f"{self.model.__name__} has no stored field {', '.join(sorted(unknown))}")
        return {name: self.to_value(name, value) for name, value in changes.items()}

    def differences(self, before: T, after: T) -> dict[str, Any]:
        """The stored fields in which two of them differ, with the values of ``after``."""
        values = ((name, getattr(before, name), getattr(after, name)) for name in self.fields)
        return {name: new for name, old, new in values if old != new}

    def from_row(self, row: sa.Row[Any] | sa.RowMapping, **more: Any) -> T:
        """The dataclass of a row. ``more``: the fields that are stored elsewhere."""
        mapping = row if isinstance(row, sa.RowMapping) else row._mapping
        values = {name: mapping[column] for name, column in zip(self.fields, self.columns, strict=True)}
        values.update(more)
        return msgspec.convert(values, self.model)


__all__ = ["JsonWith", "LongText", "Name", "RowMapper", "TextOfJson", "Time", "Uuid", "datetime", "keep_all_of_unicode"]
