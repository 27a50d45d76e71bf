"""Orders of an operation to the scheduler, and whether their sender still waits for the answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Order:
    """Names the attempt of a step that asks the scheduler for a host.

    ``sent_at``: in seconds since 1970, by the sender's clock.
    """

    operation_id: str
    epoch: int
    sequence: int
    attempt: int
    sent_at: float


class Awaited(Enum):
    """Whether an order's answer is awaited."""

    YES = "yes"
    # The operation is in another attempt, or will be. That one releases what this one claimed.
    BY_A_LATER_ATTEMPT = "by a later attempt"
    # The operation has ended, is being undone or is to be: nobody may release what is claimed from now on.
    NO = "no"
