"""Whether Nova's service of a host is off, as Nova's databases say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from causeway.adopt.nova import NovaCloud, tables
from causeway.model.adoption import Finding

# Nova's service version from which on a nova-compute does not start without its file compute_id (2023.1).
FENCED_FROM = 65
BINARY = "nova-compute"


@dataclass(frozen=True)
class NovaService:
    """``last_seen_up``: when it reported last; it does so every ten seconds unless Nova's report_interval says otherwise."""

    version: int
    last_seen_up: datetime | None


#: host -> the records of its nova-compute: one, unless something is wrong
ReadServices = Callable[[str], list[NovaService]]


def of_cloud(cloud: NovaCloud) -> ReadServices:
    def read(host: str) -> list[NovaService]:
        columns = tables.SERVICES.c
        wanted = (columns.host == host, columns.binary == BINARY, columns.deleted == 0)
        return [
            NovaService(row["version"] or 0, row["last_seen_up"])
            for cell in cloud.cells
            for row in cell.database.rows(tables.SERVICES, *wanted)
        ]

    return read


def compare(host: str, before: list[NovaService], now: list[NovaService]) -> Iterator[Finding]:
    """What two looks at Nova's services of a host show, with more than one report's time between them."""
    if len(now) != 1:
        yield Finding(
            "nova.services",
            host,
            f"Nova's databases have {len(now)} services {BINARY} of it.",
            "Look which of them is meant; a host is in one cell.",
        )
        return
    (service,) = now
    if service.version < FENCED_FROM:
        yield Finding(
            "nova.old",
            host,
            f"Its nova-compute had service version {service.version}: one of before 2023.1 starts beside Causeway.",
            "Upgrade this Nova to 2023.1 or later first, one start of nova-compute is enough.",
        )
    if [each.last_seen_up for each in before] != [service.last_seen_up]:
        yield Finding(
            "nova.reports",
            host,
            f"Its nova-compute reports to Nova, the last time at {service.last_seen_up}.",
            "Stop nova-compute on this host, wherever it runs, and disable its unit.",
        )
