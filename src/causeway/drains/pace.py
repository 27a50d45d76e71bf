"""What may begin now: which server is next, and whether there is room for it. It only reckons; see `windows`, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from causeway.model.drains import DrainServer, DrainServerState, First, Limits

# What counts against the limits. A confirm only deletes what is left at the source.
UNDER_WAY = frozenset({DrainServerState.ASKED, DrainServerState.REVERTING})
_MIB = 1 << 20


@dataclass
class Load:
    """How many moves are under way: in all, and for each that has a limit. Where a server goes may not be known."""

    total: int = 0
    per_source_host: Counter[str] = field(default_factory=Counter)
    per_target_host: Counter[str] = field(default_factory=Counter)
    per_cell_pair: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, server: DrainServer) -> None:
        self.total += 1
        self.per_source_host[server.source_host] += 1
        if server.target_host is not None:
            self.per_target_host[server.target_host] += 1
        if server.target_cell is not None:
            self.per_cell_pair[server.source_cell, server.target_cell] += 1

    def is_full(self, limits: Limits) -> bool:
        """Nothing more may begin, whatever it is."""
        return self.total >= limits.total

    def has_room(self, limits: Limits, server: DrainServer) -> bool:
        """Whether one more may begin that goes this way."""
        return (
            not self.is_full(limits)
            and self.per_source_host[server.source_host] < limits.per_source_host
            and (server.target_host is None or self.per_target_host[server.target_host] < limits.per_target_host)
            and (
                server.target_cell is None
                or self.per_cell_pair[server.source_cell, server.target_cell] < limits.per_cell_pair
            )
        )


def load_of(servers: Iterable[DrainServer]) -> Load:
    """What those that are under way make."""
    load = Load()
    for server in servers:
        if server.state in UNDER_WAY:
            load.add(server)
    return load


def is_due(server: DrainServer, now: datetime) -> bool:
    """Whether the time has come until which it was put off."""
    return server.not_before is None or server.not_before <= now


def waiting(servers: Iterable[DrainServer], first: First, now: datetime) -> list[DrainServer]:
    """Those whose move may be asked for if there is room for it, in the order in which they go."""
    pending = (server for server in servers if server.state is DrainServerState.PENDING and is_due(server, now))
    sign = -1 if first is First.LARGEST else 1
    return sorted(pending, key=lambda server: (sign * _size(server), server.instance_uuid))


def _size(server: DrainServer) -> int:
    return server.bytes + server.memory_mb * _MIB
