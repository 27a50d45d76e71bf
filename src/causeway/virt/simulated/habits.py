"""How fast simulated guests write to their disks and change their memory: their flavor says it, or their host."""

from __future__ import annotations

from dataclasses import dataclass

from causeway.errors import GuestFailed
from causeway.model.flavor import Flavor

_MIB, _GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Habits:
    """``data``: bytes on the root disk from the beginning. The rates are bytes per second."""

    data: float = 0.0
    disk_rate: float = 0.0
    memory_rate: float = 0.0


def habits_of(flavor: Flavor, usual: Habits) -> Habits:
    """The habits of guests with this flavor: its extra specs ``simulated:...``, and ``usual`` where it has none.

    Raises `GuestFailed` for an extra spec that is no number.
    """

    def said(name: str, unit: int, otherwise: float) -> float:
        text = flavor.extra_specs.get(f"simulated:{name}")
        if text is None:
            return otherwise
        try:
            return max(0.0, float(text)) * unit
        except ValueError:
            raise GuestFailed(f"Extra spec simulated:{name} of flavor {flavor.name} is not a number: {text}") from None

    return Habits(
        said("data", _GIB, usual.data),
        said("disk_rate", _MIB, usual.disk_rate),
        said("memory_rate", _MIB, usual.memory_rate),
    )
