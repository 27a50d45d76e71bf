"""What a cloud of processes holds: memory, connections, places of pools, queues. Before a storm, and after it.

What a storm leaves behind is seen here, though every answer was right: a place of a pool that nobody returns, a queue
that nobody reads, a process that grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import requests
import sqlalchemy as sa

from tests.faults.clouds.processes_site import ProcessesSite
from tests.faults.complaints import LEAKED, Complaint
from tests.functional.processes.rabbit import Queue
from tests.process_trees import resident

IN_USE = "causeway_database_connections_in_use"
COUNTS = {
    "postgresql": "SELECT datname, state FROM pg_stat_activity WHERE backend_type = 'client backend'"
    " AND pid <> pg_backend_pid()",
    "mariadb": "SELECT db, command FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db IS NOT NULL",
}


@dataclass(frozen=True)
class Gauges:
    """``memory``: MiB of each process. ``connections``: at each database. ``in_transaction``: those of them that nobody works on,
    in the middle of a transaction. ``in_use``: places of pools that each process has given to somebody."""

    memory: dict[str, float]
    connections: dict[str, int]
    in_transaction: int
    in_use: dict[str, int]
    queues: int
    messages: dict[str, int]
    without_consumers: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def least_of(self, earlier: Gauges) -> Gauges:
        """This with what was in use both times."""
        return replace(
            self,
            in_transaction=min(self.in_transaction, earlier.in_transaction),
            in_use={name: min(count, earlier.in_use.get(name, count)) for name, count in self.in_use.items()},
        )

    def left(self) -> Iterator[Complaint]:
        """What should not be there in a cloud in which nobody does anything."""
        for name, count in self.in_use.items():
            if count:
                yield Complaint(LEAKED, f"{name}: {count} connections of its pools are with nobody")
        if self.in_transaction:
            yield Complaint(LEAKED, f"{self.in_transaction} connections in the middle of a transaction of nobody")
        for name, count in self.messages.items():
            yield Complaint(LEAKED, f"queue {name}: {count} messages")
        for name in self.without_consumers:
            yield Complaint(LEAKED, f"queue {name}, which nobody reads")


def look(site: ProcessesSite) -> Gauges:
    connections = _connections(site)
    queues = site.broker.queues()
    counts: dict[str, int] = {}
    for database, _state in connections:
        counts[database] = counts.get(database, 0) + 1
    return Gauges(
        memory={name: round(resident(process.pid), 1) for name, process in site.processes.items()},
        connections=dict(sorted(counts.items())),
        in_transaction=sum(state.startswith("idle in transaction") for _database, state in connections),
        in_use={name: _in_use(site, name) for name in site.deployment.metrics if name in site.processes},
        queues=len(queues),
        messages={_name(queue): queue.messages for queue in queues if queue.messages},
        without_consumers=sorted(_name(queue) for queue in queues if not queue.consumers),
    )


def _name(queue: Queue) -> str:
    return f"{queue.host}/{queue.name}"


def _connections(site: ProcessesSite) -> list[tuple[str, str]]:
    """(database, what its client does) of each."""
    engine = sa.create_engine(site.database.url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        rows = connection.execute(sa.text(COUNTS[site.kind])).all()
    # Those of one test are called by its process.
    return [(str(database).split("_")[-1], str(state or "")) for database, state in rows]


def _in_use(site: ProcessesSite, name: str) -> int:
    lines = requests.get(f"http://{site.deployment.metrics[name]}/metrics", timeout=10).text.splitlines()
    return round(sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(IN_USE)))
