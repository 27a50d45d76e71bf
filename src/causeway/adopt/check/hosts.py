"""Hosts, as the records of all cells have them: each has one service, one node and one mapping, in one cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from causeway.adopt.check.codes import found
from causeway.adopt.check.findings import Finding, Kind, Subject, host
from causeway.adopt.hosts.nova_services import BINARY, FENCED_FROM
from causeway.adopt.nova import NovaCell, NovaCloud, tables
from causeway.adopt.nova.database import Row
from causeway.adopt.nova.narrow import NODES, PLACES

_HYPERVISORS = ("QEMU", "KVM")


@dataclass
class HostRecords:
    """What one cell has of a host."""

    name: str
    cell: NovaCell
    services: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    servers: int = 0


@dataclass
class Hosts:
    """``by_cell``: uuid of a cell -> host -> its records. ``mapped``: host -> the cells, by Nova's number."""

    by_cell: dict[str, dict[str, HostRecords]]
    mapped: dict[str, set[int]]
    newest: int

    def of(self, cell: NovaCell, name: str) -> HostRecords | None:
        return self.by_cell.get(cell.uuid, {}).get(name)

    def all(self) -> Iterator[HostRecords]:
        for hosts in self.by_cell.values():
            yield from hosts.values()

    def is_mapped(self, cell: NovaCell, name: str) -> bool:
        return cell.row_id in self.mapped.get(name, ())


def read(cloud: NovaCloud) -> Hosts:
    mapped: dict[str, set[int]] = {}
    for row in cloud.api.rows(tables.HOST_MAPPINGS):
        mapped.setdefault(row["host"], set()).add(row["cell_id"])
    by_cell: dict[str, dict[str, HostRecords]] = {}
    for cell in cloud.cells:
        hosts = by_cell.setdefault(cell.uuid, {})
        services = tables.SERVICES
        for row in cell.database.rows(services, services.c.deleted == 0, services.c.binary == BINARY):
            hosts.setdefault(row["host"], HostRecords(row["host"], cell)).services.append(row)
        for row in cell.database.rows(NODES, NODES.c.deleted == 0):
            hosts.setdefault(row["host"], HostRecords(row["host"], cell)).nodes.append(row)
        for name, records in hosts.items():
            records.servers = cell.database.count(PLACES, PLACES.c.deleted == 0, PLACES.c.host == name)
    versions = [row["version"] or 0 for hosts in by_cell.values() for each in hosts.values() for row in each.services]
    return Hosts(by_cell, mapped, max(versions, default=0))


def findings(
    hosts: Hosts, cloud: NovaCloud, now: datetime, down_after: timedelta
) -> Iterator[tuple[Subject, list[Finding]]]:
    """Each host, with what is found of it. ``now``: in UTC, without a zone, as Nova's times are."""
    cells: dict[str, list[str]] = {}
    for each in hosts.all():
        cells.setdefault(each.name, []).append(each.cell.name)
    for each in hosts.all():
        subject = host(each.name)
        listed = [*_of_records(each, subject), *_of_mapping(each, hosts, cloud, subject)]
        listed += _of_service(each, hosts.newest, now, down_after, subject)
        listed += _of_evacuations(each, subject)
        others = [name for name in cells[each.name] if name != each.cell.name]
        if others:
            listed.append(found(subject, "host_twice", f"{each.cell.name} and {', '.join(others)} have records of it."))
        yield subject, listed
    for name in sorted(hosts.mapped.keys() - cells.keys()):
        yield host(name), [found(host(name), "host_gone", "It is mapped to a cell, and no cell has a record of it.")]


def _of_records(each: HostRecords, subject: Subject) -> Iterator[Finding]:
    if not each.services:
        yield found(subject, "service_missing", "It has a compute node, and no nova-compute.")
    if not each.nodes:
        yield found(subject, "node_missing", "It has a nova-compute, and no compute node.")
    if len(each.nodes) > 1:
        names = ", ".join(str(row["hypervisor_hostname"]) for row in each.nodes[:3])
        yield found(
            subject, "nodes_many", f"It has {len(each.nodes)} compute nodes: {names}{', ...' * (len(each.nodes) > 3)}."
        )
    kinds = {str(row["hypervisor_type"]) for row in each.nodes} - {*_HYPERVISORS}
    if kinds:
        yield found(subject, "hypervisor", f"Its hypervisor is {', '.join(sorted(kinds))}.")


def _of_mapping(each: HostRecords, hosts: Hosts, cloud: NovaCloud, subject: Subject) -> Iterator[Finding]:
    mapped = hosts.mapped.get(each.name, set())
    if not mapped:
        yield found(subject, "host_unmapped", f"{each.cell.name} has its records, and it is mapped to no cell.")
        return
    others = [cell.name if (cell := cloud.cell_of(row_id)) is not None else f"number {row_id}, which does not exist"
              for row_id in sorted(mapped - {each.cell.row_id})]  # fmt: skip
    if others:
        yield found(
            subject,
            "host_mapped_elsewhere",
            f"{each.cell.name} has its records, and it is mapped to {', '.join(others)}.",
        )


def _of_service(
    each: HostRecords, newest: int, now: datetime, down_after: timedelta, subject: Subject
) -> Iterator[Finding]:
    for row in each.services:
        why = why_down(row, now, down_after)
        if why is not None:
            servers = f" {each.servers} servers are there." if each.servers else ""
            yield found(
                subject, "host_down" if each.servers else "empty_host_down", f"Its nova-compute {why}.{servers}"
            )
        version = row["version"] or 0
        if version < FENCED_FROM:
            yield found(
                subject, "service_unfenced", f"Its nova-compute has version {version}, 2023.1 has {FENCED_FROM}."
            )
        elif version < newest:
            yield found(subject, "service_old", f"Its nova-compute has version {version}; others have {newest}.")


def why_down(service: Row, now: datetime, down_after: timedelta) -> str | None:
    """Why a service counts as down, as Nova decides it; None if it is up."""
    if service["forced_down"]:
        return "is forced down"
    seen = service["last_seen_up"] or service["updated_at"] or service["created_at"]
    if seen is None:
        return "has never reported"
    return f"reported last at {seen:%Y-%m-%d %H:%M} UTC" if abs(now - seen) > down_after else None


def _of_evacuations(each: HostRecords, subject: Subject) -> Iterator[Finding]:
    migrations = tables.MIGRATIONS
    waiting = each.cell.database.count(
        migrations,
        migrations.c.deleted == 0,
        migrations.c.source_compute == each.name,
        migrations.c.migration_type == "evacuation",
        migrations.c.status == "done",
    )
    if waiting:
        yield found(subject, "evacuated_from", f"{waiting} servers were evacuated from it, and it has not cleaned up.")


def of_other_services(cell: NovaCell, now: datetime, down_after: timedelta) -> Iterator[Finding]:
    services = tables.SERVICES
    for row in cell.database.rows(services, services.c.deleted == 0, services.c.binary != BINARY):
        why = why_down(row, now, down_after)
        # nova-api has a record, and never reports.
        if why is not None and row["topic"]:
            subject = Subject(Kind.DEPLOYMENT, f"{row['binary']} on {row['host']}")
            yield found(subject, "service_down", f"It {why}, in {cell.name}.")


__all__ = ["HostRecords", "Hosts", "findings", "of_other_services", "read", "why_down"]
