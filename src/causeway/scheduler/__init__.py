"""The scheduler: candidates from Placement -> filters -> weighers -> claim. `service` is where to start reading."""

from causeway.scheduler.explain import Explanation, HostVerdict, Refusal
from causeway.scheduler.host_state import HostRecord, HostSource, HostState
from causeway.scheduler.request import (
    Destination,
    MoveClaim,
    RequestedGroup,
    RequestSpec,
    SchedulingResult,
    Selection,
)
from causeway.scheduler.service import Scheduler

__all__ = [
    "Destination",
    "Explanation",
    "HostRecord",
    "HostSource",
    "HostState",
    "HostVerdict",
    "MoveClaim",
    "Refusal",
    "RequestSpec",
    "RequestedGroup",
    "Scheduler",
    "SchedulingResult",
    "Selection",
]
