"""Hosts hold exactly what the records of servers say: NUMA cells, pinned CPUs, pages and PCI devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from causeway.audit.snapshot import HostState, Record, ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, HostClaim, Severity
from causeway.model.numa import InstanceNUMATopology
from causeway.model.states import VmState

UNDECIDED = frozenset({VmState.BUILDING, VmState.ERROR, VmState.DELETED})


@dataclass
class Expected:
    """What a host has to hold for a server. ``kept``: as the source of a move that waits for confirm or revert."""

    numa_topology: InstanceNUMATopology | None
    pci_addresses: list[str]
    migration_uuid: str | None = None
    kept: bool = False

    def is_claim(self, claim: HostClaim) -> bool:
        return (claim.numa_topology, sorted(claim.pci_addresses)) == (self.numa_topology, sorted(self.pci_addresses))


def expected_of(snapshot: Snapshot, record: Record, host: str) -> list[Expected]:
    found = []
    waiting, context = snapshot.waiting(record.uuid), record.migration_context
    migration = waiting.migration.uuid if waiting is not None and waiting.migration is not None else None
    if record.host == host:
        found.append(Expected(record.numa_topology, [d.address for d in record.pci_devices], migration))
    if waiting is not None and waiting.source_host == host and context is not None:
        addresses = [device.address for device in context.old_pci_devices]
        found.append(Expected(context.old_numa_topology, addresses, kept=True))
    return [each for each in found if each.numa_topology is not None or each.pci_addresses]


def orphaned(snapshot: Snapshot) -> Iterator[Disagreement]:
    for host in snapshot.hosts.values():
        by_server: dict[str, list[HostClaim]] = {}
        for claim in host.contents.claims if host.contents is not None else []:
            by_server.setdefault(claim.instance_uuid, []).append(claim)
        for uuid, claims in by_server.items():
            standing, home = snapshot.standing(uuid), snapshot.home(uuid)
            if standing is ServerStanding.UNSEEN or (standing is ServerStanding.LIVE and home is None):
                continue
            if home is not None and (not snapshot.is_quiet(home) or home.vm_state in UNDECIDED):
                continue
            unexplained = list(claims)
            for wanted in expected_of(snapshot, home, host.name) if home is not None else []:
                match = next((claim for claim in unexplained if wanted.is_claim(claim)), None)
                if match is not None:
                    unexplained.remove(match)
            for claim in unexplained:
                yield _orphan(host, claim, standing, home)


def _orphan(host: HostState, claim: HostClaim, standing: ServerStanding, home: Record | None) -> Disagreement:
    if home is not None:
        why = f"which is on {home.host}, and no move explains it"
    else:
        why = "which is deleted" if standing is ServerStanding.DELETED else "which nobody knows"
    left = "This cloud does not know whose it is." if standing is ServerStanding.UNKNOWN else ""
    if host.contents is not None and claim.instance_uuid in host.contents.guests:
        left = "There is a guest that may use it."
    return Disagreement(
        "claim.orphaned",
        Severity.WARNING,
        f"claim on {host.name}",
        claim.instance_uuid,
        f"{host.name} holds CPUs, memory or devices for server {claim.instance_uuid}, {why}.",
        None
        if left
        else Fix(
            "remove_claim",
            {"host": host.name, "uuid": claim.instance_uuid, "migration_uuid": claim.migration_uuid},
        ),
        left,
    )


def missing(snapshot: Snapshot) -> Iterator[Disagreement]:
    for home in snapshot.homes:
        if not snapshot.is_quiet(home) or home.vm_state in UNDECIDED:
            continue
        waiting = snapshot.waiting(home.uuid)
        for host in dict.fromkeys([home.host, waiting.source_host if waiting is not None else None]):
            contents = snapshot.contents_of(host)
            if host is None or contents is None:
                continue
            claims = [claim for claim in contents.claims if claim.instance_uuid == home.uuid]
            for wanted in expected_of(snapshot, home, host):
                if not any(wanted.is_claim(claim) for claim in claims):
                    yield Disagreement(
                        "claim.missing",
                        Severity.ERROR,
                        f"claim on {host}",
                        home.uuid,
                        f"{host} does not hold the CPUs, memory or devices that the server's record says.",
                        Fix(
                            "restore_claim",
                            {
                                "host": host,
                                "uuid": home.uuid,
                                "cell_uuid": home.cell_uuid,
                                "migration_uuid": wanted.migration_uuid,
                                "kept": wanted.kept,
                            },
                        ),
                    )
