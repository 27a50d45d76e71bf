"""The memory of the two operations that unshelve a server: one follows the other if the server leaves its cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway.model.outcomes import GuestOutcome
from causeway.operations.move_records import MoveRecordsMemory
from causeway.operations.places import Place
from causeway.sagas.memory import Given

# Of their recipes.
UNSHELVE_VERSION = UNSHELVE_ACROSS_CELLS_VERSION = 1


@dataclass
class UnshelveMemory:
    """``wanted_host``: the one that was asked for. ``offloaded``: the guest is made anew, from the image ``image_id`` if
    its root disk is not on a volume. ``power_on``: whether it runs afterwards. ``place``: once it was chosen, or claimed before.
    ``may_leave_cell``: if no host of its own cell takes it.
    """

    wanted_host: Given[str | None] = None
    offloaded: Given[bool] = True
    image_id: Given[str | None] = None
    power_on: Given[bool] = True
    place: Place | None = None
    guest: GuestOutcome | None = None
    may_leave_cell: Given[bool] = False


@dataclass
class UnshelveAcrossCellsMemory(MoveRecordsMemory):
    """``target_cell``: empty until a host was chosen, unless one was asked for. ``unshelve``: what follows in that cell."""

    unshelve: UnshelveMemory = field(default_factory=UnshelveMemory)
