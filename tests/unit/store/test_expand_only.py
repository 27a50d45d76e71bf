"""Schemas are upgraded under running services: what an older process says still works on the newer schema.

The rule is in docs/architecture/records.md: revisions only add.
"""

from __future__ import annotations

import ast
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from causeway.store import schema
from causeway.store.api_tables import ApiBase
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database, utcnow

TABLES: dict[schema.Kind, sa.MetaData] = {"api": ApiBase.metadata, "cell": CellBase.metadata}
# What only adds. op.get_bind() leads to create_all and to Table.create.
ADDING = {"add_column", "create_table", "create_index", "create_unique_constraint", "get_bind"}
REVISIONS = sorted(schema.MIGRATIONS.glob("*/versions/[0-9]*.py"))


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_revision_only_adds(path: Path) -> None:
    calls = [
        node.func
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    of_op = {call.attr for call in calls if isinstance(call.value, ast.Name) and call.value.id == "op"}
    assert of_op <= ADDING, (
        f"{path.name}: {of_op - ADDING} may break running services: see docs/architecture/records.md"
    )
    assert not {"drop", "drop_all", "execute"} & {call.attr for call in calls}


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_column_that_is_added_does_not_have_to_be_given(path: Path) -> None:
    """An older process inserts rows without it."""
    columns = [
        {word.arg: getattr(word.value, "value", word.value) for word in node.keywords}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Column"
    ]
    for column in columns:
        assert column.get("nullable") is True or "server_default" in column, f"{path.name}: {column}"


def _added(kind: str) -> set[tuple[str, str]]:
    """(table, column) of all that revisions after the first added."""
    found = set()
    for path in REVISIONS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and len(node.args) == 2 and path.parents[1].name == kind:
                table, column = node.args
                if isinstance(table, ast.Constant) and isinstance(column, ast.Call):
                    found.add((str(table.value), str(ast.literal_eval(column.args[0]))))
    return found


@pytest.mark.parametrize(
    ("kind", "name"),
    [("api", "migrations"), ("cell", "instances"), ("cell", "compute_nodes")],
)
def test_an_older_process_continues_after_a_sync(kind: schema.Kind, name: str, tmp_path: Path) -> None:
    """With its connection open meanwhile: it reads and writes rows as it did, and finds those that it had."""
    database = Database(f"sqlite:///{tmp_path}/{kind}.sqlite", kind)
    added = _added(kind)
    older = sa.MetaData()
    for table in TABLES[kind].tables.values():
        columns = [column._copy() for column in table.columns if (table.name, column.name) not in added]
        sa.Table(table.name, older, *columns)
    older.create_all(database.engine)
    config = schema._config(kind)
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.stamp(config, ScriptDirectory(str(schema.MIGRATIONS / kind)).get_bases())
    table = older.tables[name]
    values = {
        column.name: _value(column) for column in table.columns if column.name != "id" and column.computed is None
    }

    def write(uuid: str) -> None:
        with database.write() as connection:
            connection.execute(sa.insert(table).values(values | {"uuid": uuid}))

    write("before")
    with database.read() as old:
        before = old.execute(sa.select(table)).all()
        schema.sync(database, kind)
        write("after")
        found = old.execute(sa.select(table)).all()
    assert found[:1] == before and len(found) == 2
    state = schema.state(database, kind)
    assert state.current == state.newest
    known = {column["name"] for column in sa.inspect(database.engine).get_columns(name)}
    assert {column for of_table, column in added if of_table == name} <= known
    database.close()


def _value(column: sa.Column[Any]) -> Any:
    if isinstance(column.type, sa.JSON):
        return []
    wanted = column.type.python_type
    return utcnow() if wanted is datetime else wanted()
