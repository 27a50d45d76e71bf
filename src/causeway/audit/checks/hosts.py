"""Hosts that report what is another host's."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import Impostor, Snapshot
from causeway.model.audit import Disagreement, Severity


def impostors(snapshot: Snapshot) -> Iterator[Disagreement]:
    for found in snapshot.impostors:
        kind, message = _what(snapshot, found)
        yield Disagreement(
            kind,
            Severity.ERROR,
            f"host {found.name} of cell {snapshot.cell_name(found.cell_uuid)}",
            None,
            f"{message} It gets no servers, and nothing is done with that node for its sake.",
            left=(
                "Find out why: its state may be a copy of the other host's, or the host may have been broken into. Then stop it,"
                " and delete its compute service by its uuid (openstack compute service list)."
            ),
        )


def _what(snapshot: Snapshot, found: Impostor) -> tuple[str, str]:
    if found.owner not in (None, found.name):
        return "host.node_of_other", f"Host {found.name} reports node {found.node_uuid}, which is host {found.owner}'s."
    other = snapshot.hosts.get(found.name)
    if other is not None and other.cell_uuid != found.cell_uuid:
        where = snapshot.cell_name(other.cell_uuid)
        return "host.name_of_other", f"Host {found.name} has the name of a host of cell {where}."
    return (
        "host.node_of_other",
        f"Host {found.name} reports node {found.node_uuid}, which is not its own as far as is known.",
    )
