"""What an operation costs in statements, calls and work: the difference of two looks at the system's counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.instructions import Spent
from causeway.embedded.cloud import EmbeddedCloud
from causeway.rpc import counters
from causeway.store.database import statements


@dataclass
class Counts:
    """Calls by what was called. ``sql``: by database; ``rpc``: "call compute.method"; the others: "service METHOD route".

    ``placement_sql``: statements of Placement, which are not ours. ``spent``: what the whole process worked for it.
    """

    sql: Counter[str] = field(default_factory=Counter)
    rpc: Counter[str] = field(default_factory=Counter)
    placement: Counter[str] = field(default_factory=Counter)
    http: Counter[str] = field(default_factory=Counter)
    placement_sql: int = 0
    spent: Spent = field(default_factory=Spent)

    def __sub__(self, before: Counts) -> Counts:
        return Counts(
            self.sql - before.sql,
            self.rpc - before.rpc,
            self.placement - before.placement,
            self.http - before.http,
            self.placement_sql - before.placement_sql,
            self.spent - before.spent,
        )

    def total(self, kind: str) -> int:
        counter: Counter[str] = getattr(self, kind)
        return counter.total()

    def by_service(self) -> dict[str, int]:
        """HTTP calls to each service."""
        services: Counter[str] = Counter()
        for call, number in self.http.items():
            services[call.partition(" ")[0]] += number
        return dict(services)


def typical(runs: Sequence[Spent]) -> Spent:
    """What the runs of one operation spent: the median of each, and of parts the sum of all, for their shares."""
    instructions = [run.instructions for run in runs if run.instructions is not None]
    parts: dict[str, float] = {}
    for run in runs:
        for part, seconds in run.parts.items():
            parts[part] = parts.get(part, 0.0) + seconds
    return Spent(
        median(run.user_seconds for run in runs),
        round(median(instructions)) if len(instructions) == len(runs) else None,
        parts,
    )


def look(
    cloud: EmbeddedCloud, api_requests: Counter[str], *, placement_sql: int = 0, spent: Spent | None = None
) -> Counts:
    """Everything counted so far. ``api_requests``: those that others than the measuring client sent to our own API."""
    return Counts(
        sql=Counter({name.removeprefix("the "): number for name, number in statements.snapshot().items()}),
        rpc=Counter({f"{kind} {topic}.{method}": n for (kind, topic, method), n in counters.snapshot().items()}),
        placement=cloud.around.placement.calls,
        http=Counter(cloud.devcloud.calls) + api_requests,
        placement_sql=placement_sql,
        spent=spent or Spent(),
    )
