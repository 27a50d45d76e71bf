"""Placement: a server holds exactly its flavor's resources on its host, a migration the source's until confirm or revert."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from causeway.audit.snapshot import Record, ServerStanding, Snapshot
from causeway.clients.placement.kept_disk import DISK, of_storage
from causeway.clients.placement.types import Allocations, Resources
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.sagas import ENDED
from causeway.model.states import MIGRATION_ENDED
from causeway.scheduler.resources import flavor_groups

# Resources that ports ask for, not the flavor.
OF_PORTS = "NET_"


def expected_of(record: Record) -> Resources:
    """What a server's flavor takes: the sum of its request groups."""
    return _sum(
        group.resources
        for group in flavor_groups(
            record.flavor, is_volume_backed=record.is_volume_backed, image=record.image_meta
        ).values()
    )


def _sum(parts: Iterator[Resources] | list[Resources]) -> Resources:
    total: Resources = {}
    for resources in parts:
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def _total(held: Allocations) -> Resources:
    return {name: amount for name, amount in _sum(list(held.values())).items() if not name.startswith(OF_PORTS)}


def _show(resources: Resources) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(resources.items())) or "nothing"


def _elsewhere(snapshot: Snapshot, held: Allocations, node: str) -> list[str]:
    """The held providers that belong to other compute nodes."""
    roots = {provider: (snapshot.providers or {}).get(provider, provider) for provider in held}
    return [provider for provider, root in roots.items() if root != node and root in snapshot.nodes]


def _is_plain(record: Record, held: Allocations, snapshot: Snapshot) -> bool:
    """Whether all that the server should hold is on its node's own provider, so that it can be claimed without a guess."""
    plain = len(flavor_groups(record.flavor, is_volume_backed=record.is_volume_backed, image=record.image_meta)) == 1
    return plain and all(provider in snapshot.nodes for provider in held)


def _set(consumer: str, record: Record, node: str, resources: Resources) -> Fix:
    return Fix(
        "set_allocation",
        {
            "consumer": consumer,
            "allocations": {node: resources},
            "project_id": record.project_id,
            "user_id": record.user_id,
        },
    )


def of_servers(snapshot: Snapshot) -> Iterator[Disagreement]:
    assert snapshot.allocations is not None
    for record in snapshot.homes:
        if not snapshot.is_quiet(record):
            continue
        held = snapshot.allocations.get(record.uuid, {})
        if record.host is None:
            if held:
                yield Disagreement(
                    "allocation.orphaned",
                    Severity.WARNING,
                    record.uuid,
                    record.uuid,
                    f"The server is on no host, but holds {_show(_total(held))} in Placement.",
                    Fix("delete_allocation", {"consumer": record.uuid}),
                )
            elif record.uuid in snapshot.hidden_consumers:
                yield _half_written(record)
            continue
        node = snapshot.node_of(record.host)
        if node is None:
            continue
        problem = _problem(snapshot, record, held, node)
        if problem is not None:
            kind, message = problem
            fix = _set(record.uuid, record, node, expected_of(record)) if _is_plain(record, held, snapshot) else None
            left = "The flavor's resources come from several providers: migrate the server, which claims them again."
            yield Disagreement(
                kind, Severity.ERROR, record.uuid, record.uuid, message, fix, left="" if fix is not None else left
            )


def _half_written(record: Record) -> Disagreement:
    owner = {"project_id": record.project_id, "user_id": record.user_id}
    return Disagreement(
        "allocation.half_written",
        Severity.WARNING,
        record.uuid,
        record.uuid,
        "Placement has the server as a consumer without allocations, which it does not show: it ended in the middle of a write.",
        Fix("delete_consumer", {"consumer": record.uuid, **owner}),
    )


def _problem(snapshot: Snapshot, record: Record, held: Allocations, node: str) -> tuple[str, str] | None:
    expected = expected_of(record)
    if not held:
        return (
            None
            if not expected
            else (
                "allocation.missing",
                f"The server holds nothing in Placement; on {record.host} it should hold {_show(expected)}.",
            )
        )
    wrong = _elsewhere(snapshot, held, node)
    if wrong:
        names = ", ".join(_host_of(snapshot, provider) for provider in wrong)
        return "allocation.wrong_host", f"The server is on {record.host}, but holds resources of {names} in Placement."
    if _total(held) != expected:
        return (
            "allocation.wrong_amount",
            f"The server holds {_show(_total(held))} in Placement; its flavor is {_show(expected)}.",
        )
    return None


def _host_of(snapshot: Snapshot, provider: str) -> str:
    root = (snapshot.providers or {}).get(provider, provider)
    return next((host.name for host in snapshot.hosts.values() if host.node_uuid == root), f"provider {provider}")


def of_migrations(snapshot: Snapshot) -> Iterator[Disagreement]:
    assert snapshot.allocations is not None
    # A move gives its migration the last status before it ends itself.
    ending = {operation.migration_uuid for operation in snapshot.operations if operation.state not in ENDED}
    for uuid, migration in snapshot.migrations.items():
        held = snapshot.allocations.get(uuid, {})
        server = migration.instance_uuid
        if migration.status in MIGRATION_ENDED:
            if held and uuid not in ending and snapshot.standing(server) is not ServerStanding.UNSEEN:
                yield _left_by_migration(snapshot, uuid, server, held)
            continue
        waiting = snapshot.waiting(server)
        home = snapshot.home(server)
        if waiting is None or waiting.migration is None or waiting.migration.uuid != uuid or home is None:
            continue
        memory = waiting.memory
        source = dataclasses.replace(home, flavor=memory.old_flavor)
        expected = expected_of(source)
        own = snapshot.allocations.get(server, {})
        if DISK not in _total(held) and of_storage(own):
            # The disk is in storage that both hosts share, and the server has kept it.
            expected = {name: amount for name, amount in expected.items() if name != DISK}
        if _total(held) != expected or _elsewhere(snapshot, held, memory.source_node):
            kind = "allocation.missing" if not held else "allocation.wrong_amount"
            plain = _is_plain(source, held, snapshot)
            yield Disagreement(
                kind,
                Severity.ERROR,
                uuid,
                server,
                f"Migration {uuid} waits for confirm or revert and should hold {_show(expected)} on"
                f" {memory.source_host}; it holds {_show(_total(held))}.",
                _set(uuid, home, memory.source_node, expected) if plain else None,
                left="" if plain else "The flavor's resources come from several providers.",
            )


def _left_by_migration(snapshot: Snapshot, uuid: str, server: str, held: Allocations) -> Disagreement:
    """An ended migration's allocation, which its server needs only if it is at the source and holds nothing there."""
    home = snapshot.home(server)
    fix = Fix("delete_allocation", {"consumer": uuid})
    if home is not None and home.host is not None and snapshot.is_quiet(home):
        node = snapshot.node_of(home.host)
        own = (snapshot.allocations or {}).get(server, {})
        if node is not None and node in held and (not own or _elsewhere(snapshot, own, node)):
            fix = Fix("return_allocation", {"server": server, "migration": uuid})
    return Disagreement(
        "allocation.orphaned",
        Severity.WARNING,
        uuid,
        server,
        f"Migration {uuid} has ended, but still holds {_show(_total(held))} in Placement.",
        fix,
    )


def of_others(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Consumers that are neither migrations nor servers."""
    assert snapshot.allocations is not None
    for consumer, held in snapshot.allocations.items():
        if consumer in snapshot.migrations or not any(
            (snapshot.providers or {}).get(provider, provider) in snapshot.nodes for provider in held
        ):
            continue
        standing = snapshot.standing(consumer)
        if standing is ServerStanding.DELETED:
            yield Disagreement(
                "allocation.orphaned",
                Severity.WARNING,
                consumer,
                consumer,
                f"The server is deleted, but still holds {_show(_total(held))} in Placement.",
                Fix("delete_allocation", {"consumer": consumer}),
            )
        elif standing is ServerStanding.UNKNOWN:
            yield Disagreement(
                "allocation.unknown_consumer",
                Severity.WARNING,
                consumer,
                None,
                f"Consumer {consumer} holds {_show(_total(held))} on a compute node, but is neither a server nor a migration.",
                left="This cloud does not know whose it is. Unless other services allocate from compute nodes,"
                " `causeway manage placement audit --delete` deletes it.",
            )
