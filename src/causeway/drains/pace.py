"""The moves that can begin now: which server is next, and whether there is room for it. Pure computation; see also `windows`.

Moves share *resources*: a source host, a target host, a pair of cells, and the whole drain. The administrator says how many moves
a resource takes at a time, or the drain finds that out (`climbing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from causeway.model.drains import FIRST_LIMITS, DrainServer, DrainServerState, First, How, Limits

# These states count against the limits. A confirm does not, because it transfers nothing.
UNDER_WAY = frozenset({DrainServerState.ASKED, DrainServerState.REVERTING})
_MIB = 1 << 20


class Resource(NamedTuple):
    """``kind``: a name of `Limits`; ``name``: which one of that kind, as records write it."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


ALL = Resource("total")


def resources_of(server: DrainServer) -> list[Resource]:
    """The resources that the move of a server uses. Its target may not be known yet."""
    if server.how is How.RECORDS:
        # Only rows of databases move.
        return []
    found = [ALL, Resource("per_source_host", server.source_host)]
    if server.target_host is not None:
        found.append(Resource("per_target_host", server.target_host))
    if server.target_cell is not None:
        found.append(Resource("per_cell_pair", f"{server.source_cell} {server.target_cell}"))
    return found


@dataclass(frozen=True)
class Room:
    """How many moves each resource takes at a time. ``found``: for resources without a limit of the administrator, by name."""

    limits: Limits
    found: Mapping[str, int] = field(default_factory=dict)

    def of(self, resource: Resource) -> int:
        most: int | None = getattr(self.limits, resource.kind)
        if most is None:
            most = self.found.get(str(resource), FIRST_LIMITS[resource.kind])
        if resource == ALL and self.limits.bytes_per_second is not None:
            most = min(most, self.found.get(BYTES, 1))
        return most


# The name, in what was found, of the number of moves that share a drain's bytes a second.
BYTES = "bytes_per_second"


@dataclass
class Load:
    """How many moves are running on each resource."""

    count: Counter[Resource] = field(default_factory=Counter)

    def add(self, server: DrainServer) -> None:
        self.count.update(resources_of(server))

    def has_room(self, room: Room, server: DrainServer) -> bool:
        """Whether the move of this server may begin too."""
        return all(self.count[resource] < room.of(resource) for resource in resources_of(server))


def load_of(servers: Iterable[DrainServer], now: datetime | None = None) -> Load:
    """Returns the load of the running moves. Those held until later than ``now`` do not count."""
    load = Load()
    for server in servers:
        if server.state in UNDER_WAY and not (now is not None and is_held(server, now)):
            load.add(server)
    return load


def is_held(server: DrainServer, now: datetime) -> bool:
    """Whether the server's disks are copied and it waits for its window, as its row says."""
    return server.why is not None and server.not_before is not None and server.not_before > now


def is_due(server: DrainServer, now: datetime) -> bool:
    """Whether the server's ``not_before`` has passed."""
    return server.not_before is None or server.not_before <= now


def waiting(servers: Iterable[DrainServer], first: First, now: datetime) -> list[DrainServer]:
    """The servers whose moves may be requested if there is room, in the order in which they go.

    Largest first: servers of the host that has most left to send or receive, and of these the largest. The longest work begins
    first, so that no host still has much to do when all others are done.
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
            # Hosts send nothing for servers that move as records.
            -max((left[host] for host in _hosts_of(server)), default=0),
            -size_of(server),
            server.instance_uuid,
        ),
    )


def _hosts_of(server: DrainServer) -> list[Resource]:
    return [each for each in resources_of(server) if each.kind in ("per_source_host", "per_target_host")]


def size_of(server: DrainServer) -> int:
    """The largest number of bytes that may travel."""
    return server.bytes + server.memory_mb * _MIB
