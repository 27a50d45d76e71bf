"""One check, from the beginning to the report."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from oslo_config import cfg

from causeway.adopt.check import belongings, hosts, looks, mappings, places, roles, servers, standing
from causeway.adopt.check.codes import found
from causeway.adopt.check.findings import DEPLOYMENT, Finding, Kind, Subject, Verdict, server
from causeway.adopt.check.report import NotChecked, Report
from causeway.adopt.check.servers import Around, ServerRecords
from causeway.adopt.check.services import Services
from causeway.adopt.importing.server_batches import surroundings_of
from causeway.adopt.nova import NovaCloud
from causeway.adopt.nova.objects import UnknownRecord
from causeway.adopt.records.server_rows import Surroundings
from causeway.model.found_host import FoundHost
from causeway.store.api import cells as own_cells
from causeway.store.database import API, Database

Look = Callable[[ServerRecords, Around], Iterator[tuple[str, str]]]
LOOKS: tuple[Look, ...] = (
    standing.of_state,
    standing.of_host,
    belongings.of_records,
    belongings.of_flavor,
    belongings.of_disks,
    belongings.of_volumes,
    belongings.of_ports,
)
# Nova's default of [DEFAULT] service_down_time.
_DOWN_AFTER = 60


@dataclass(frozen=True)
class Asked:
    """``nova``: the files of a role with the API database. ``looks``: of hosts. ``own``: the options of Causeway's API."""

    nova: roles.Files
    computes: roles.ComputeFiles = field(default_factory=lambda: roles.ComputeFiles({}))
    policy: Path | None = None
    own: cfg.ConfigOpts | None = None
    looks: roles.Files = ()


def check(asked: Asked, *, now: datetime | None = None) -> Report:
    """Compares all that Nova and the services around know of its servers and hosts. Nothing is written.

    Raises Misconfigured if Nova's databases or files can't be read, DatabaseFailed if a database does not answer.
    """
    at = now or datetime.now(UTC)
    report = Report(at)
    options, seen = roles.written(asked.nova), looks.read(asked.looks)
    _of_files(asked, report)
    with NovaCloud(asked.nova) as cloud, closing(Services(cloud.conf, report)) as services:
        _of_deployment(cloud, asked, report)
        known = hosts.read(cloud)
        seconds = options.get(("DEFAULT", "service_down_time"), "")
        down_after = timedelta(seconds=int(seconds) if seconds.isdecimal() else _DOWN_AFTER)
        nova_time = at.astimezone(UTC).replace(tzinfo=None)
        for subject, listed in hosts.findings(known, cloud, nova_time, down_after):
            report.judge(subject, listed)
        for cell in cloud.cells:
            for finding in hosts.of_other_services(cell, nova_time, down_after):
                report.add(finding)
        around = Around(cloud, known, _surroundings(cloud, report), _images_types(asked, known, report))
        _ask(services, around, report)
        for cell in cloud.cells:
            for row, mapping in servers.copies(cloud, cell):
                code, what = standing.of_copy(cloud, cell, row, mapping)
                report.add(found(server(row["uuid"], row["display_name"]), code, what))
            for batch in servers.read(around, cell):
                for records in batch:
                    report.judge(records.subject, of_server(records, around))
        _of_looks(seen, around, report)
        for finding in (*mappings.of_mappings(cloud), *mappings.of_requests(cloud)):
            report.add(finding)
    return report


def of_server(records: ServerRecords, around: Around) -> list[Finding]:
    said = [found(records.subject, code, what) for look in LOOKS for code, what in look(records, around)]
    waits_for = records.imported.waits_for if records.imported is not None else None
    if waits_for is not None and all(finding.verdict is not Verdict.BLOCKS for finding in said):
        said.append(found(records.subject, "not_imported", f"An import leaves it out: {waits_for}."))
    return said


def _of_looks(seen: dict[str, FoundHost], around: Around, report: Report) -> None:
    without = 0
    for records in around.hosts.all():
        found_there = seen.get(records.name)
        if found_there is None:
            without += 1
            continue
        for finding in looks.of_host(found_there, records, around):
            report.add(finding)
    if without:
        why = "Run `causeway adopt look --json` there, and give what it prints with --look."
        report.not_checked.append(NotChecked(f"Guests and files of {without} hosts", why))
    for name in sorted(seen.keys() - {records.name for records in around.hosts.all()}):
        report.not_checked.append(NotChecked(f"What was seen on {name}", "Nova has no record of this host."))


def _surroundings(cloud: NovaCloud, report: Report) -> Surroundings:
    try:
        return surroundings_of(cloud)
    except UnknownRecord as failure:
        report.add(found(DEPLOYMENT, "topology_unknown", failure.message))
        return Surroundings({}, {}, cloud.name_template)


def _of_files(asked: Asked, report: Report) -> None:
    for files, role in [(asked.nova, "the API"), *asked.computes.roles().items()]:
        for subject, listed in roles.of_options(files, role):
            report.judge(subject, listed)
    if asked.policy is None:
        report.not_checked.append(NotChecked("Nova's policy", "Give its file with --policy, if there is one."))
        return
    for finding in roles.of_policy(asked.policy):
        report.add(finding)


def _of_deployment(cloud: NovaCloud, asked: Asked, report: Report) -> None:
    report.judge(DEPLOYMENT)
    report.facts.append(("Schema of Nova's API database", cloud.api.revision))
    report.facts += [(f"Schema of {cell.name}", cell.database.revision) for cell in cloud.cells]
    if "uuid" not in cloud.name_template:
        what = f"Guests are named {cloud.name_template}, by the number of their row; new ones have a number made from their uuid."
        report.add(found(DEPLOYMENT, "guest_names", what))
    if asked.own is None:
        report.not_checked.append(NotChecked("Cells of Causeway", "Give the file of its API with --config-file."))
        return
    with closing(Database(asked.own.api_database.connection, API)) as database:
        known = {cell.uuid for cell in own_cells.list_cells(database)}
    for cell in cloud.cells:
        if cell.uuid not in known:
            what = f"Causeway has no cell {cell.name} with the uuid {cell.uuid}."
            report.add(found(Subject(Kind.DEPLOYMENT, cell.name), "cell_missing", what))


def _images_types(asked: Asked, known: hosts.Hosts, report: Report) -> dict[str, str]:
    """Host -> what it keeps local disks as, where its files were given."""
    kinds: dict[roles.Files, str] = {}
    found_of: dict[str, str] = {}
    unknown = set()
    for each in known.all():
        files = asked.computes.of(each.name)
        if files is None:
            unknown.add(each.name)
            continue
        if files not in kinds:
            kinds[files] = roles.images_type(roles.written(files))
        found_of[each.name] = kinds[files]
    if unknown:
        why = "Give it with --compute-config HOST=FILE, or *=FILE for all other hosts."
        report.not_checked.append(NotChecked(f"nova.conf of {len(unknown)} hosts, and what they keep disks as", why))
    return found_of


def _ask(services: Services, around: Around, report: Report) -> None:
    """Asks the services around, and notes in ``around`` what servers are compared with."""

    def add(findings: Iterable[Finding]) -> bool:
        deque(map(report.add, findings), maxlen=0)
        return True

    placement = services.placement
    if placement is not None:
        services.asked("Placement", lambda: add(places.of_placement(around.cloud, around.hosts, placement)))

    def read_ports() -> set[str]:
        known: set[str] = set()
        for page in services.ports():
            known.update(str(port["id"]) for port in page)
            add(places.of_ports(around.cloud, page))
        return known

    if services.network is not None:
        around.ports = services.asked("Neutron", read_ports)
    if services.volumes is not None:
        around.attachments = services.asked("Cinder", services.attachments)


__all__ = ["LOOKS", "Asked", "check", "of_server"]
