"""Things of the API database that few rows make: flavors, key pairs, aggregates, server groups, limits, hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from causeway.adopt.nova import NovaCloud, tables
from causeway.adopt.nova.database import Row
from causeway.adopt.nova.objects import load
from causeway.store import api_tables as ours

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Thing:
    """``owner``: the value of each table's column that says whose row it is. ``rows``: by table."""

    key: str
    owner: Any
    name: str
    rows: Rows
    nova_id: int | None = None


@dataclass(frozen=True)
class Kind:
    """``tables``: each with the column that says whose row it is; those that refer to others come after them."""

    name: str
    tables: tuple[tuple[sa.Table, str], ...]
    read: Callable[[NovaCloud, int], Iterator[list[Thing]]]


def _flavors(nova: NovaCloud, size: int) -> Iterator[list[Thing]]:
    same = (
        "id", "flavorid", "name", "vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap", "description",
        "created_at", "updated_at",
    )  # fmt: skip
    for batch in nova.api.batches(tables.FLAVORS, size):
        ids = [row["id"] for row in batch]
        specs = nova.api.rows_of(tables.FLAVOR_EXTRA_SPECS, "flavor_id", ids)
        projects = nova.api.rows_of(tables.FLAVOR_PROJECTS, "flavor_id", ids)
        yield [
            Thing(
                row["flavorid"],
                row["id"],
                row["name"],
                {
                    "flavors": [
                        {name: row[name] for name in same}
                        | {
                            "rxtx_factor": row["rxtx_factor"] or 1.0,
                            "is_public": bool(row["is_public"]),
                            "disabled": bool(row["disabled"]),
                            "extra_specs": _pairs(specs.get(row["id"], [])),
                        }
                    ],
                    "flavor_projects": [
                        {"flavor_id": row["id"], "project_id": each}
                        for each in _each(projects, row["id"], "project_id")
                    ],
                },
                row["id"],
            )
            for row in batch
        ]


def _key_pairs(nova: NovaCloud, size: int) -> Iterator[list[Thing]]:
    same = ("id", "user_id", "name", "public_key", "fingerprint", "created_at")
    for batch in nova.api.batches(tables.KEY_PAIRS, size):
        yield [
            Thing(
                str(row["id"]),
                row["id"],
                row["name"],
                {"key_pairs": [{name: row[name] for name in same} | {"type": row["type"] or "ssh"}]},
                row["id"],
            )
            for row in batch
        ]


def _aggregates(nova: NovaCloud, size: int) -> Iterator[list[Thing]]:
    same = ("id", "uuid", "name", "created_at", "updated_at")
    for batch in nova.api.batches(tables.AGGREGATES, size):
        ids = [row["id"] for row in batch]
        metadata = nova.api.rows_of(tables.AGGREGATE_METADATA, "aggregate_id", ids)
        hosts = nova.api.rows_of(tables.AGGREGATE_HOSTS, "aggregate_id", ids)
        yield [
            Thing(
                row["uuid"],
                row["id"],
                row["name"],
                {
                    "aggregates": [
                        {name: row[name] for name in same} | {"metadata": _pairs(metadata.get(row["id"], []))}
                    ],
                    "aggregate_hosts": [
                        {"aggregate_id": row["id"], "host": each} for each in _each(hosts, row["id"], "host")
                    ],
                },
                row["id"],
            )
            for row in batch
        ]


def _groups(nova: NovaCloud, size: int) -> Iterator[list[Thing]]:
    same = ("id", "uuid", "name", "project_id", "user_id", "created_at")
    for batch in nova.api.batches(tables.INSTANCE_GROUPS, size):
        ids = [row["id"] for row in batch]
        policies = nova.api.rows_of(tables.INSTANCE_GROUP_POLICY, "group_id", ids)
        members = nova.api.rows_of(tables.INSTANCE_GROUP_MEMBER, "group_id", ids)
        yield [
            Thing(
                row["uuid"],
                row["id"],
                row["name"],
                {
                    "instance_groups": [{name: row[name] for name in same} | _policy(policies.get(row["id"], []))],
                    "instance_group_member": [
                        {"group_id": row["id"], "instance_uuid": each}
                        for each in _each(members, row["id"], "instance_uuid")
                    ],
                },
                row["id"],
            )
            for row in batch
        ]


def _policy(rows: list[Row]) -> dict[str, Any]:
    if not rows:
        return {"policy": "", "rules": {}}
    return {"policy": rows[0]["policy"] or "", "rules": load(rows[0]["rules"], "The rules of a server group") or {}}


def _limits(nova: NovaCloud, _size: int) -> Iterator[list[Thing]]:
    """All limits of a project, or of a class."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in nova.api.rows(tables.QUOTAS):
        found[row["project_id"]].append(_limit(row, row["project_id"]))
    for row in nova.api.rows(tables.PROJECT_USER_QUOTAS):
        found[row["project_id"]].append(_limit(row, row["project_id"], row["user_id"]))
    for row in nova.api.rows(tables.QUOTA_CLASSES):
        project = f"class:{row['class_name']}"
        found[project].append(_limit(row, project))
    yield [Thing(project, project, project, {"quotas": limits}) for project, limits in found.items()]


def _limit(row: Row, project: str, user: str = "") -> dict[str, Any]:
    # NULL is no limit, as -1 is.
    limit = -1 if row["hard_limit"] is None else row["hard_limit"]
    return {"project_id": project, "user_id": user, "resource": row["resource"], "hard_limit": limit}


def _hosts(nova: NovaCloud, size: int) -> Iterator[list[Thing]]:
    nodes = nodes_of_hosts(nova)
    for batch in nova.api.batches(tables.HOST_MAPPINGS, size):
        found = []
        for row in batch:
            cell = nova.cell_of(row["cell_id"])
            if cell is not None:
                mapping = {
                    "host": row["host"],
                    "cell_uuid": cell.uuid,
                    "node_uuid": nodes.get((cell.uuid, row["host"])),
                }
                found.append(Thing(row["host"], row["host"], row["host"], {"host_mappings": [mapping]}, row["id"]))
        yield found


def nodes_of_hosts(nova: NovaCloud) -> dict[tuple[str, str], str]:
    """(cell, host) -> the uuid of its compute node, for hosts that have one."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in nova.cells:
        for node in cell.database.rows(tables.COMPUTE_NODES, tables.COMPUTE_NODES.c.deleted == 0):
            if node["uuid"] is not None:
                found[cell.uuid, node["host"]].append(node["uuid"])
    return {host: nodes[0] for host, nodes in found.items() if len(nodes) == 1}


def _pairs(rows: list[Row]) -> dict[str, str]:
    return {row["key"]: row["value"] for row in rows}


def _each(rows: Mapping[Any, list[Row]], owner: Any, column: str) -> list[str]:
    return sorted({row[column] for row in rows.get(owner, [])})


def _table(model: type[ours.ApiBase]) -> sa.Table:
    table: sa.Table = model.__table__  # type: ignore[assignment]
    return table


#: in the order in which they are imported
KINDS = (
    Kind("host", ((_table(ours.HostMappings), "host"),), _hosts),
    Kind("flavor", ((_table(ours.Flavors), "id"), (_table(ours.FlavorProjects), "flavor_id")), _flavors),
    Kind("key pair", ((_table(ours.KeyPairs), "id"),), _key_pairs),
    Kind("aggregate", ((_table(ours.Aggregates), "id"), (_table(ours.AggregateHosts), "aggregate_id")), _aggregates),
    Kind(
        "server group", ((_table(ours.InstanceGroups), "id"), (_table(ours.InstanceGroupMembers), "group_id")), _groups
    ),
    Kind("limits", ((_table(ours.Quotas), "project_id"),), _limits),
)

__all__ = ["KINDS", "Kind", "Thing", "nodes_of_hosts"]
