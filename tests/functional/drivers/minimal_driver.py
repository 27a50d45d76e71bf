"""A driver that has what every driver must have, and nothing else: its guests and disks are those of simulated hosts."""

from __future__ import annotations

from typing import Any

from causeway.virt.driver import Driver
from causeway.virt.simulated import SimulatedDriver


def _of_simulated(name: str) -> Any:
    def work(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(self.simulated, name)(*arguments, **named)

    return work


def minimal(simulated: Driver) -> Driver:
    """The required methods of a simulated host; the optional ones answer what the interface answers by default."""
    assert isinstance(simulated, SimulatedDriver)
    required = {name: _of_simulated(name) for name in Driver.__abstractmethods__}
    driver: Driver = type("MinimalDriver", (Driver,), {**required, "simulated": simulated})()
    return driver
