"""What was measured of migrations, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table


@dataclass(frozen=True)
class Stretch:
    """A step of the operation: when it began and ended, in seconds since the guest was heard for the last time."""

    step: str
    began: float
    ended: float


@dataclass(frozen=True)
class Migration:
    """``silent``: seconds for which nobody outside heard the guest; ``still``: for which its hypervisors had it stand still.

    ``whole``: of the migration. ``load``: how many processes wanted to run on the machine. ``steps``: those of the silence.
    """

    network: str
    case: str
    silent: float
    still: float
    whole: float
    load: float
    steps: tuple[Stretch, ...] = ()
    #: seconds since it was heard for the last time: stood still, ran again, was heard again
    stopped_at: float = 0.0
    resumed_at: float = 0.0

    @property
    def more(self) -> float:
        """For how long it was silent although it did not stand still."""
        return self.silent - self.still


def spread(values: Sequence[float]) -> str:
    """Median, and the smallest and the largest if there are several."""
    if len(values) < 2:
        return f"{values[0]:.2f}" if values else ""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def steps_of(found: Iterable[tuple[str, float, float]], silence: tuple[float, float]) -> tuple[Stretch, ...]:
    """The steps (name, from, to) that lie in a silence at least in part, with times since it began."""
    began, ended = silence
    inside = [each for each in found if each[1] < ended and each[2] > began]
    return tuple(
        Stretch(name, round(since - began, 3), round(until - began, 3))
        for name, since, until in sorted(inside, key=lambda each: each[1])
    )


def table_of(found: Sequence[Migration]) -> Table:
    """One row for each network and case."""
    table = Table("Network", "Migration", "Number", "Silent, s", "Stood still, s", "Silent beyond that, s", "Load")
    for network, case in dict.fromkeys((each.network, each.case) for each in found):
        those = [each for each in found if (each.network, each.case) == (network, case)]
        table.add_row(
            network,
            case,
            str(len(those)),
            spread([each.silent for each in those]),
            spread([each.still for each in those]),
            spread([each.more for each in those]),
            f"{min(each.load for each in those):.1f} to {max(each.load for each in those):.1f}",
        )
    return table
