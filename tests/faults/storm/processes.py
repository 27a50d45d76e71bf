"""The storm on a cloud of processes, which are struck one after the other, or two at once.

What the cloud holds is measured before and after.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from tests.faults.clouds.processes_site import QUEUE_SECONDS, ProcessesSite
from tests.faults.storm.gauges import Gauges, look
from tests.faults.storm.run import Result, Storm
from tests.faults.storm.strikes import ProcessesWeather

# Seconds until everything must have settled; some of it waits for a lease, a lost answer, a host's next report.
PATIENCE = 180.0
# Seconds within which what is left in pools and queues is gone: RabbitMQ deletes queues that nobody reads after a while.
DRAINS_AWAY = QUEUE_SECONDS + 60.0


@dataclass
class ProcessesResult:
    """``struck``: accident -> how often."""

    result: Result
    struck: Counter[str]
    before: Gauges
    after: Gauges

    def as_json(self) -> dict[str, Any]:
        found = self.result
        return {
            "answers": found.answers,
            "operations": found.operations,
            "wrong": found.wrong,
            "struck": self.struck,
            "before": self.before.as_json(),
            "after": self.after.as_json(),
        }

    def tables(self) -> list[Table]:
        memory = Table("Process", "MiB before", "MiB after", title="Memory")
        for name, mib in self.before.memory.items():
            memory.add_row(name, f"{mib:.0f}", f"{self.after.memory.get(name, 0.0):.0f}")
        held = Table("Held", "before", "after", title="Connections and queues")
        for name in sorted(self.before.connections | self.after.connections):
            both = (each.connections.get(name, 0) for each in (self.before, self.after))
            held.add_row(f"connections to {name}", *map(str, both))
        for name, values in {
            "places of pools in use": [sum(each.in_use.values()) for each in (self.before, self.after)],
            "connections in a transaction of nobody": [each.in_transaction for each in (self.before, self.after)],
            "queues": [each.queues for each in (self.before, self.after)],
            "messages in queues": [sum(each.messages.values()) for each in (self.before, self.after)],
            "queues that nobody reads": [len(each.without_consumers) for each in (self.before, self.after)],
        }.items():
            held.add_row(name, *map(str, values))
        struck = Table("Accident", "times", title="What was struck")
        for name, count in sorted(self.struck.items()):
            struck.add_row(name, str(count))
        return [struck, memory, held]


def look_when_quiet(site: ProcessesSite) -> Gauges:
    """What is left of queues and of what is in use at the end of patience: only what every look has seen is nobody's, because
    periodic work uses a connection now and then."""
    seen, end = look(site), time.monotonic() + DRAINS_AWAY
    while list(seen.left()) and time.monotonic() < end:
        seen = look(site).least_of(seen)
    return seen


def run(
    directory: Path,
    *,
    kind: str = "postgresql",
    servers: int,
    seconds: float,
    every: tuple[float, float] = (0.5, 1.5),
    seed: int = 0,
    drains: bool = True,
    only: str = "",
    pairs: bool = False,
) -> ProcessesResult:
    """A storm from its beginning to its end. ``kind``: of the database server; ``only``: accidents with this in their names;
    ``pairs``: two at once."""
    with ProcessesSite(directory, kind=kind) as site:
        weather = ProcessesWeather(site, random.Random(seed), only=only, pairs=pairs)
        storm = Storm(
            site,
            servers=servers,
            seconds=seconds,
            every=every,
            seed=seed,
            drains=drains,
            weather=weather,
            patience=PATIENCE,
        )
        before = look(site)
        result = storm.run()
        after = look_when_quiet(site)
        left = [f"{each.kind}: {each.text}" for each in after.left()]
        if left:
            result.wrong.setdefault("", []).extend(left)
        return ProcessesResult(result, weather.struck, before, after)
