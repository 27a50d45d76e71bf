"""Hands back flavors, key pairs, aggregates, server groups and limits: once the whole cloud was Causeway's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.adopt.hand_back.rows import seconds
from causeway.adopt.importing.things import KINDS, Kind, Thing
from causeway.adopt.nova import NovaCloud, NovaDatabase, tables
from causeway.store import sequences
from causeway.store.database import Database

Rows = Mapping[str, list[dict[str, Any]]]
Write = Callable[[NovaDatabase, sa.Connection, Rows], None]


def hand_back_things(nova: NovaCloud, api: Database, *, write: bool = True) -> dict[str, int]:
    """Writes what differs. Returns how many of each kind did."""
    found: dict[str, int] = {}
    for kind in KINDS:
        if kind.name in _WRITES:
            theirs = {thing.owner: thing for batch in kind.read(nova, 500) for thing in batch}
            changed, gone = _difference(_ours(api, kind), theirs)
            if write and (changed or gone):
                with nova.api.write() as connection:
                    for owner in [*changed, *gone]:
                        _delete(nova.api, connection, kind, owner)
                    for rows in changed.values():
                        _WRITES[kind.name](nova.api, connection, rows)
                    _advance(connection, kind)
            if changed or gone:
                found[kind.name] = len(changed) + len(gone)
    return found


def _ours(api: Database, kind: Kind) -> Mapping[Any, Rows]:
    """owner -> its rows here, by table."""
    found: dict[Any, dict[str, list[dict[str, Any]]]] = {}
    with api.read() as connection:
        for table, column in kind.tables:
            for row in connection.execute(sa.select(table)).mappings():
                rows = found.setdefault(row[column], {each.name: [] for each, _column in kind.tables})
                rows[table.name].append(dict(row))
    return found


def _difference(ours: Mapping[Any, Rows], theirs: Mapping[Any, Thing]) -> tuple[dict[Any, Rows], list[Any]]:
    changed = {
        owner: rows for owner, rows in ours.items() if owner not in theirs or _plain(rows) != _plain(theirs[owner].rows)
    }
    return changed, [owner for owner in theirs if owner not in ours]


def _plain(rows: Rows) -> dict[str, list[str]]:
    """To compare: in no order, with whole seconds."""
    return {
        name: sorted(str(sorted((key, str(_whole(value))) for key, value in row.items())) for row in listed)
        for name, listed in rows.items()
    }


def _whole(value: Any) -> Any:
    return seconds(value) if hasattr(value, "microsecond") else value


# Nova's tables of each kind, those that refer to others first, with the column that says whose row it is.
_TABLES: dict[str, tuple[tuple[sa.TableClause, str], ...]] = {
    "flavor": (
        (tables.FLAVOR_EXTRA_SPECS, "flavor_id"),
        (tables.FLAVOR_PROJECTS, "flavor_id"),
        (tables.FLAVORS, "id"),
    ),
    "key pair": ((tables.KEY_PAIRS, "id"),),
    "aggregate": (
        (tables.AGGREGATE_METADATA, "aggregate_id"),
        (tables.AGGREGATE_HOSTS, "aggregate_id"),
        (tables.AGGREGATES, "id"),
    ),
    "server group": (
        (tables.INSTANCE_GROUP_MEMBER, "group_id"),
        (tables.INSTANCE_GROUP_POLICY, "group_id"),
        (tables.INSTANCE_GROUPS, "id"),
    ),
    "limits": ((tables.QUOTAS, "project_id"), (tables.PROJECT_USER_QUOTAS, "project_id")),
}


def _delete(of: NovaDatabase, connection: sa.Connection, kind: Kind, owner: Any) -> None:
    for table, column in _TABLES[kind.name]:
        if of.has(table):
            connection.execute(sa.delete(table).where(table.c[column] == owner))
    if kind.name == "limits" and str(owner).startswith("class:"):
        name = str(owner).removeprefix("class:")
        connection.execute(sa.delete(tables.QUOTA_CLASSES).where(tables.QUOTA_CLASSES.c.class_name == name))


def _insert(of: NovaDatabase, connection: sa.Connection, table: sa.TableClause, values: Mapping[str, Any]) -> None:
    plain = {name: _whole(value) for name, value in values.items()}
    connection.execute(sa.insert(table).values(of.known(table, plain)))


def _insert_pairs(
    of: NovaDatabase,
    connection: sa.Connection,
    table: sa.TableClause,
    owner: Mapping[str, Any],
    pairs: Mapping[str, Any],
) -> None:
    for key, value in pairs.items():
        _insert(of, connection, table, {**owner, "key": key, "value": value})


def _write_flavor(of: NovaDatabase, connection: sa.Connection, rows: Rows) -> None:
    (row,) = rows["flavors"]
    _insert(of, connection, tables.FLAVORS, row)
    _insert_pairs(of, connection, tables.FLAVOR_EXTRA_SPECS, {"flavor_id": row["id"]}, row["extra_specs"])
    for each in rows["flavor_projects"]:
        _insert(of, connection, tables.FLAVOR_PROJECTS, each)


def _write_key_pair(of: NovaDatabase, connection: sa.Connection, rows: Rows) -> None:
    _insert(of, connection, tables.KEY_PAIRS, rows["key_pairs"][0])


def _write_aggregate(of: NovaDatabase, connection: sa.Connection, rows: Rows) -> None:
    (row,) = rows["aggregates"]
    _insert(of, connection, tables.AGGREGATES, row)
    _insert_pairs(of, connection, tables.AGGREGATE_METADATA, {"aggregate_id": row["id"]}, row["metadata"])
    for each in rows["aggregate_hosts"]:
        _insert(of, connection, tables.AGGREGATE_HOSTS, each)


def _write_group(of: NovaDatabase, connection: sa.Connection, rows: Rows) -> None:
    (row,) = rows["instance_groups"]
    _insert(of, connection, tables.INSTANCE_GROUPS, row)
    policy = {"group_id": row["id"], "policy": row["policy"], "rules": msgspec.json.encode(row["rules"]).decode()}
    _insert(of, connection, tables.INSTANCE_GROUP_POLICY, policy)
    for each in rows["instance_group_member"]:
        _insert(of, connection, tables.INSTANCE_GROUP_MEMBER, each)


def _write_limits(of: NovaDatabase, connection: sa.Connection, rows: Rows) -> None:
    for row in rows["quotas"]:
        project, limit = row["project_id"], {"resource": row["resource"], "hard_limit": row["hard_limit"]}
        if project.startswith("class:"):
            _insert(of, connection, tables.QUOTA_CLASSES, {"class_name": project.removeprefix("class:"), **limit})
        elif row["user_id"]:
            _insert(
                of, connection, tables.PROJECT_USER_QUOTAS, {"project_id": project, "user_id": row["user_id"], **limit}
            )
        else:
            _insert(of, connection, tables.QUOTAS, {"project_id": project, **limit})


def _advance(connection: sa.Connection, kind: Kind) -> None:
    """Lets Nova's databases count on from the numbers that were given."""
    for table, _column in _TABLES[kind.name]:
        if "id" in table.c:
            sequences.advance(connection, table)


_WRITES: dict[str, Write] = {
    "flavor": _write_flavor,
    "key pair": _write_key_pair,
    "aggregate": _write_aggregate,
    "server group": _write_group,
    "limits": _write_limits,
}

__all__ = ["hand_back_things"]
