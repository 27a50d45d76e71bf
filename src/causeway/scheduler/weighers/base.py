"""The base of weighers, and how weights become comparable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from oslo_config.cfg import ConfigOpts

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState


class HostWeigher(ABC):
    """Gives a host a raw weight: more is better if the multiplier is positive.

    Each class says ``of_host_alone``: whether a host weighs the same for all requests. If so, large clouds weigh a host once,
    with a request that says nothing, and compare requests by what they remember (`fleet_view`). So there is no default: with a
    wrong one, a weigher that reads the request would choose wrongly there, without a word.
    """

    option: ClassVar[str]
    """The multiplier's name in [filter_scheduler], and in the metadata of aggregates that override it."""

    of_host_alone: ClassVar[bool]

    def __init_subclass__(cls, *, of_host_alone: bool) -> None:
        super().__init_subclass__()
        cls.of_host_alone = of_host_alone

    def __init__(self, conf: ConfigOpts) -> None:
        self._default: float = getattr(conf.filter_scheduler, self.option)

    @property
    def name(self) -> str:
        return type(self).__name__

    @abstractmethod
    def weigh(self, host: HostState, request: Request) -> float:
        """The raw weight."""

    def concerns(self, request: Request) -> bool:  # noqa: ARG002
        """Whether hosts may weigh differently for this request."""
        return True

    def multiplier(self, host: HostState) -> float:
        """Returns the smallest multiplier that an aggregate of the host names, else the option. Ignores other values."""
        named = [number for text in host.aggregate_values(self.option) if (number := _number(text)) is not None]
        return min(named, default=self._default)


def normalise(raw: list[float]) -> list[float]:
    """Scales weights to 0..1 over all candidates; if all are equal, to 0."""
    if not raw:
        return []
    least, span = min(raw), max(raw) - min(raw)
    if span <= 0:
        return [0.0] * len(raw)
    # Rounding must not exceed the bounds.
    return [min(1.0, max(0.0, (value - least) / span)) for value in raw]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
