"""Image caches: temporary files of transfers are deleted with the end of the transfer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from causeway.audit.snapshot import Snapshot
from causeway.model.audit import Disagreement, Fix, Severity

PART_OF = re.compile(r"\.part-of-([0-9a-f-]{36})")


def files(snapshot: Snapshot) -> Iterator[Disagreement]:
    for host in snapshot.hosts.values():
        for file in host.contents.leftover_files if host.contents is not None else []:
            match = PART_OF.search(file.name)
            server = match[1] if match is not None else None
            movement = snapshot.movement(server) if server is not None else None
            if movement is not None and movement.under_way:
                continue
            if server is None and file.seconds_old < snapshot.stale_after:
                # A download of a base image may be under way.
                continue
            yield Disagreement(
                "file.leftover",
                Severity.WARNING,
                f"{file.name} on {host.name}",
                server,
                f"{host.name} has {file.name} in its image cache, left by a transfer that nobody continues.",
                Fix("remove_file", {"host": host.name, "name": file.name}),
            )
