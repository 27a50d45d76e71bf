"""The memories of the two operations that unshelve a server. One follows the other if the server leaves its cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway.model.outcomes import GuestOutcome
from causeway.moves.without_guest.move_records import MoveRecordsMemory
from causeway.moves.without_guest.new_home import NewHome
from causeway.moves.without_guest.next_host import FailedHosts
from causeway.sagas.memory import Given

# The versions of their recipes.
UNSHELVE_VERSION, UNSHELVE_ACROSS_CELLS_VERSION = 1, 2


@dataclass
class UnshelveMemory:
    """``wanted_host``: the requested one. ``power_on``: whether the server runs afterwards.

    ``offloaded``: the guest is made anew, from the image ``image_id`` unless its root disk is a volume. ``place``: once it
    was chosen, or if it was claimed before. ``may_leave_cell``: if no host of its own cell takes it. ``failed_hosts``: tried
    before.
    """

    wanted_host: Given[str | None] = None
    offloaded: Given[bool] = True
    image_id: Given[str | None] = None
    power_on: Given[bool] = True
    place: NewHome | None = None
    guest: GuestOutcome | None = None
    may_leave_cell: Given[bool] = False
    failed_hosts: Given[FailedHosts] = field(default_factory=dict)


@dataclass
class UnshelveAcrossCellsMemory(MoveRecordsMemory):
    """``target_cell``: empty until a host was chosen, unless it was requested. ``unshelve``: for the operation that follows."""

    unshelve: UnshelveMemory = field(default_factory=UnshelveMemory)
