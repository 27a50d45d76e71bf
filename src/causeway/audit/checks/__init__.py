"""All checks. Each is a pure function over a snapshot, and only called if what it ``needs`` could be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from causeway.audit.checks import (
    allocations,
    attachments,
    bindings,
    claims,
    disks,
    drains,
    files,
    guests,
    history,
    hosts,
    images,
    operations,
    owners,
    records,
    states,
    storage,
    wiring,
)
from causeway.audit.snapshot import Snapshot
from causeway.model.audit import Disagreement

Look = Callable[[Snapshot], Iterator[Disagreement]]


@dataclass(frozen=True)
class Check:
    """``needs``: attributes of the snapshot that must not be None."""

    look: Look
    needs: tuple[str, ...] = ()


# Disagreements are fixed in this order: what later ones rely on comes first.
CHECKS: tuple[Check, ...] = (
    Check(hosts.impostors),
    Check(operations.stuck),
    Check(operations.without_server),
    Check(operations.without_owner),
    Check(operations.more_than_one),
    Check(operations.migrations_without_operation),
    Check(operations.migrations_and_states),
    Check(records.mappings_without_record),
    Check(records.without_mapping),
    Check(records.second_copies),
    Check(records.hidden_flags),
    Check(records.mapping_facts),
    Check(records.build_requests),
    Check(records.unfinished_deletes),
    Check(states.stale_tasks),
    Check(history.never_ended),
    Check(guests.running_twice),
    Check(guests.elsewhere),
    Check(guests.missing),
    Check(guests.power_states),
    Check(guests.port_devices, ("ports",)),
    Check(disks.elsewhere),
    Check(disks.stashed),
    Check(disks.missing),
    Check(disks.of_rescues),
    Check(storage.orphaned),
    Check(storage.owners),
    Check(storage.put_aside),
    Check(storage.arriving),
    Check(storage.rounds),
    Check(allocations.of_servers, ("allocations",)),
    Check(allocations.of_migrations, ("allocations",)),
    Check(allocations.of_others, ("allocations",)),
    Check(bindings.elsewhere, ("ports",)),
    Check(bindings.missing, ("ports",)),
    Check(bindings.devices, ("ports",)),
    Check(wiring.announced, ("ports",)),
    Check(wiring.down, ("ports",)),
    Check(bindings.ports_missing, ("ports",)),
    Check(bindings.ports_unknown, ("ports",)),
    Check(bindings.ports_orphaned, ("ports",)),
    Check(attachments.orphaned, ("attachments",)),
    Check(attachments.connected_twice, ("attachments",)),
    Check(attachments.missing, ("attachments",)),
    Check(attachments.volumes, ("volumes", "attachments")),
    Check(owners.of_volumes, ("volumes",)),
    Check(owners.of_ports, ("ports",)),
    Check(claims.orphaned),
    Check(claims.missing),
    Check(owners.of_images, ("images",)),
    Check(images.orphaned, ("images",)),
    Check(images.of_shelved, ("images",)),
    Check(images.of_operations, ("images",)),
    Check(files.files),
    Check(drains.without_owner),
    Check(drains.closed_hosts),
    Check(drains.servers),
    Check(drains.places),
)


def run_checks(snapshot: Snapshot) -> list[Disagreement]:
    """All disagreements, each once."""
    found: dict[object, Disagreement] = {}
    for check in CHECKS:
        if all(getattr(snapshot, name) is not None for name in check.needs):
            for disagreement in check.look(snapshot):
                found.setdefault(disagreement.key, disagreement)
    return list(found.values())
