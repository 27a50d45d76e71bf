"""What may begin now: which server is next, and whether there is room for it. It only reckons; see `windows`, too.

What moves use together is a *resource*: their source host, their target host, their pair of cells, and the whole. How many moves
one of them takes at a time is what the administrator says, or what was found out (`climbing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from causeway.model.drains import FIRST_LIMITS, DrainServer, DrainServerState, First, How, Limits

# What counts against the limits. A confirm only deletes what is left at the source.
UNDER_WAY = frozenset({DrainServerState.ASKED, DrainServerState.REVERTING})
_MIB = 1 << 20


class Resource(NamedTuple):
    """``kind``: as `Limits` names it; ``name``: which of them, as records write it."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


ALL = Resource("total")


def resources_of(server: DrainServer) -> list[Resource]:
    """What the move of a server uses, as far as it is known. Where it goes may not be."""
    if server.how is How.RECORDS:
        # Rows of databases, and nothing else.
        return []
    found = [ALL, Resource("per_source_host", server.source_host)]
    if server.target_host is not None:
        found.append(Resource("per_target_host", server.target_host))
    if server.target_cell is not None:
        found.append(Resource("per_cell_pair", f"{server.source_cell} {server.target_cell}"))
    return found


@dataclass(frozen=True)
class Room:
    """How many moves each resource takes at a time. ``found``: of resources without a limit that was set, by their names."""

    limits: Limits
    found: Mapping[str, int] = field(default_factory=dict)

    def of(self, resource: Resource) -> int:
        most: int | None = getattr(self.limits, resource.kind)
        if most is None:
            most = self.found.get(str(resource), FIRST_LIMITS[resource.kind])
        if resource == ALL and self.limits.bytes_per_second is not None:
            most = min(most, self.found.get(BYTES, 1))
        return most


# How many moves at once share the bytes a second that a drain may have, among what was found out.
BYTES = "bytes_per_second"


@dataclass
class Load:
    """How many moves are under way on each resource."""

    count: Counter[Resource] = field(default_factory=Counter)

    def add(self, server: DrainServer) -> None:
        self.count.update(resources_of(server))

    def has_room(self, room: Room, server: DrainServer) -> bool:
        """Whether one more may begin that goes this way."""
        return all(self.count[resource] < room.of(resource) for resource in resources_of(server))


def load_of(servers: Iterable[DrainServer], now: datetime | None = None) -> Load:
    """What those that are under way make; what is held until later than ``now`` makes none."""
    load = Load()
    for server in servers:
        if server.state in UNDER_WAY and not (now is not None and is_held(server, now)):
            load.add(server)
    return load


def is_held(server: DrainServer, now: datetime) -> bool:
    """Whether its disks are copied, and it waits for its window (it says so)."""
    return server.why is not None and server.not_before is not None and server.not_before > now


def is_due(server: DrainServer, now: datetime) -> bool:
    """Whether the time has come until which it was put off."""
    return server.not_before is None or server.not_before <= now


def waiting(servers: Iterable[DrainServer], first: First, now: datetime) -> list[DrainServer]:
    """Those whose move may be asked for if there is room for it, in the order in which they go.

    Largest first: those of the host that has most left to send or to receive, of these the largest. What is bound to take longest
    begins, so no host is left with all of its work when the others are done.
    """
    pending = [server for server in servers if server.state is DrainServerState.PENDING and is_due(server, now)]
    if first is First.SMALLEST:
        return sorted(pending, key=lambda server: (size_of(server), server.instance_uuid))
    left: Counter[Resource] = Counter()
    for server in pending:
        left.update(dict.fromkeys(_hosts_of(server), size_of(server)))
    return sorted(
        pending,
        key=lambda server: (
            # Of servers whose records alone travel no host has anything to send.
            -max((left[host] for host in _hosts_of(server)), default=0),
            -size_of(server),
            server.instance_uuid,
        ),
    )


def _hosts_of(server: DrainServer) -> list[Resource]:
    return [each for each in resources_of(server) if each.kind in ("per_source_host", "per_target_host")]


def size_of(server: DrainServer) -> int:
    """Bytes that travel at most."""
    return server.bytes + server.memory_mb * _MIB
