"""Audits a cloud: looks, looks again, fixes what is safe."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

from causeway.audit import fixes
from causeway.audit.checks import run_checks
from causeway.audit.gather import gather
from causeway.audit.services import AuditServices
from causeway.audit.snapshot import Snapshot
from causeway.model.audit import Disagreement, Report
from causeway.rpc.compute import ComputeClient
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow

# Seconds between two checks. Work that is not in the journal (attaching a port) mostly ends in this time.
PAUSE = 1.0
# How often the audit looks again at servers that change each time.
LOOKS = 4
# A fix can reveal another disagreement.
ROUNDS = 4


@dataclass
class _Findings:
    disagreements: list[Disagreement] = field(default_factory=list)
    in_motion: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def audit_cloud(
    services: AuditServices, *, fix: bool = False, pause: float = PAUSE, stale_after: float | None = None
) -> Report:
    """Lists all disagreements; with ``fix``, fixes what is safe first and lists what is left.

    ``pause``: seconds between two checks. ``stale_after``: seconds after which work that is not in the journal must have ended
    (None: ``long_rpc_timeout``, which bounds all such work).
    """
    stale = stale_after if stale_after is not None else float(services.conf.long_rpc_timeout)
    started = time.monotonic()
    report = Report(started_at=utcnow())
    for _round in range(ROUNDS if fix else 1):
        found = _look_twice(services, pause, stale)
        report.unreached, report.in_motion, report.counts = found.unreached, found.in_motion, found.counts
        fixed = fixes.apply(services, found.disagreements) if fix else []
        keys = {disagreement.key for disagreement in fixed}
        report.disagreements = [each for each in found.disagreements if each.key not in keys]
        report.fixed += fixed
        if not fixed:
            break
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _look_twice(services: AuditServices, pause: float, stale_after: float) -> _Findings:
    first = gather(services, stale_after=stale_after)
    found = run_checks(first)
    findings = _Findings(unreached=first.unreached, counts=_count(first))
    if not found:
        return findings
    seen, moving = {each.key for each in found}, first.changing
    for _look in range(LOOKS):
        services.stopping.wait(pause)
        servers = {each.server for each in found if each.server is not None}
        again = gather(services, stale_after=stale_after, bindings_of=servers)
        found = run_checks(again)
        changing = moving | again.changing
        findings.disagreements = [each for each in found if each.key in seen and not _concerns(each, changing)]
        findings.in_motion = sorted({each.server or each.resource for each in found if _concerns(each, again.changing)})
        findings.unreached = again.unreached
        if not findings.in_motion and not any(_concerns(each, changing) for each in found):
            break
        seen, moving = {each.key for each in found}, again.changing
    return findings


def _concerns(disagreement: Disagreement, changing: Collection[str]) -> bool:
    return disagreement.server in changing or disagreement.resource in changing


def _count(snapshot: Snapshot) -> dict[str, int]:
    return {
        "servers": len(snapshot.homes),
        "moves under way": sum(
            1 for operation in snapshot.operations if _is_under_way(snapshot, operation.instance_uuid)
        ),
        "hosts": sum(1 for host in snapshot.hosts.values() if host.contents is not None),
        "allocations": len(snapshot.allocations or {}),
        "ports": len(snapshot.ports or {}),
        "volume attachments": len(snapshot.attachments or []),
    }


def _is_under_way(snapshot: Snapshot, server: str) -> bool:
    movement = snapshot.movement(server)
    return movement is not None and movement.under_way


class RunningCloud(Protocol):
    """A cloud in one process, such as `causeway.embedded.cloud.EmbeddedCloud`."""

    around: Any
    api_database: Database
    cells: Cells


def audit_embedded(cloud: RunningCloud, *, fix: bool = False, pause: float = 0.1, **options: Any) -> Report:
    """`audit_cloud` of an embedded cloud, from within its process."""
    around = cloud.around

    def computes(cell_uuid: str) -> ComputeClient:
        return ComputeClient(around.transports.get(cloud.cells.mapping(cell_uuid).transport_url))

    services = AuditServices(
        conf=around.conf,
        api=cloud.api_database,
        cells=cloud.cells,
        computes=computes,
        placement=around.placement,
        images=around.images,
        network=around.network,
        volumes=around.volumes,
    )
    return audit_cloud(services, fix=fix, pause=pause, **options)
