"""The base class of the steps of moves, and the versions of their recipes."""

from __future__ import annotations

from typing import ClassVar

import sqlalchemy as sa

from causeway.model.states import MigrationStatus
from causeway.moves.move_run import Run
from causeway.running.patience import ServerStep, While
from causeway.sagas import recipe as sagas
from causeway.sagas.journal import Write
from causeway.store.api import migrations

# 2: one recipe inside a cell and between cells. 3: steps begin together (`causeway.sagas.progress`).
RESIZE_VERSION = 3
# 2: steps begin together.
CONFIRM_VERSION = REVERT_VERSION = 2
# 2: one recipe inside a cell and between cells. 3: ports with devices are detached and attached.
LIVE_VERSION = 3
# 2: near-live migrations also follow live ones. 3: as in live ones.
NEAR_LIVE_VERSION = 3

Recipe = sagas.Recipe[Run]


# For the steps that only some moves have.
ACROSS_CELLS = sagas.Condition[Run]("across cells", lambda run: run.memory.is_cross_cell)
INSIDE_CELL = sagas.Condition[Run]("inside a cell", lambda run: not run.memory.is_cross_cell)

WITH_PORT_DEVICES = sagas.Condition[Run]("with ports that have devices", lambda run: run.memory.has_port_devices)


class Step(ServerStep[Run]):
    """A step of a move."""

    #: the migration's status from the beginning of the step on; None: the step does not change it
    migration_status: ClassVar[MigrationStatus | None] = None

    #: whether the guest is off or stands still during this step
    has_guest_off: ClassVar[bool] = False

    def with_start(self, run: Run) -> Write | None:
        """Writes the migration's status."""
        status = self.migration_status
        if status is None:
            return None

        def write(connection: sa.Connection) -> None:
            migrations.update_in(connection, run.move.migration_uuid, status=status)

        return write

    def retried_while(self, run: Run) -> While:
        return While.GUEST_IS_OFF if self.has_guest_off and run.memory.was_running else While.GUEST_RUNS
