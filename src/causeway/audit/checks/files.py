"""Hosts: temporary files are deleted with the end of the operation that made them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity

PART_OF = re.compile(r"\.part-of-([0-9a-f-]{36})")
# Disks, or the definition of a guest.
COPIES_OF = re.compile(r"^(copies|rounds|incoming)\.part-of-([0-9a-f-]{36})$")


def files(snapshot: Snapshot) -> Iterator[Disagreement]:
    for host in snapshot.hosts.values():
        for file in host.contents.leftover_files if host.contents is not None else []:
            match = PART_OF.search(file.name)
            server = match[1] if match is not None else None
            if server in snapshot.working:
                continue
            if server is None and file.seconds_old < snapshot.stale_after:
                # A download of a base image may be under way.
                continue
            needed = _why_needed(snapshot, server) if server is not None and COPIES_OF.match(file.name) else None
            yield Disagreement(
                "file.orphaned",
                Severity.WARNING,
                f"{file.name} on {host.name}",
                server,
                f"{host.name} has {file.name}, left by an operation that nobody continues.",
                Fix("remove_file", {"host": host.name, "name": file.name}) if needed is None else None,
                left=needed or "",
            )


def _why_needed(snapshot: Snapshot, server: str) -> str | None:
    """Why copies of a server's disks may be the only ones; None if they can't be."""
    standing, home = snapshot.standing(server), snapshot.home(server)
    if standing is ServerStanding.DELETED:
        return None
    if home is None:
        return "It may be the only copy of the disks: the server's record is not there, or can't be read."
    if home.host is None:
        return None
    contents = snapshot.contents_of(home.host)
    if contents is not None and home.uuid in contents.guests and home.uuid in contents.disks:
        return None
    return (
        f"It may be the only copy of the disks: {home.host} does not show them. It is deleted when the host is up and"
        " shows them, or when the server is deleted."
    )
