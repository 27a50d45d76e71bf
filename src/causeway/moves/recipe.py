"""The base class of the steps of moves, and the versions of their recipes."""

from __future__ import annotations

from typing import ClassVar

import sqlalchemy as sa

from causeway.model.states import MigrationStatus
from causeway.moves.run import Run
from causeway.sagas import recipe as sagas
from causeway.sagas.journal import Write
from causeway.sagas.retries import Patience
from causeway.store.api import migrations

# Seconds: the longest pause while a guest is off.
LONGEST_WHILE_OFF = 3.0

# The recipe with which every resize and cold migration begins; another one follows when the destination is chosen.
BEGINS_AS, BEGINS_AS_VERSION = "resize", 1
# 2: disks are copied while the guest runs. 3: the last changes can go directly from host to host.
CROSS_CELL_VERSION = 3
# 2: memory and the last changes can go directly from host to host.
NEAR_LIVE_VERSION = 2

Recipe = sagas.Recipe[Run]


class Step(sagas.Step[Run]):
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

    def patience(self, run: Run) -> Patience:
        """``[moves] patience``; ``[moves] patience_while_off`` if the move has stopped a guest that ran before."""
        options = run.unguarded.conf.moves
        if self.has_guest_off and run.memory.was_running:
            return Patience(options.patience_while_off, min(options.stuck_retry_interval, LONGEST_WHILE_OFF))
        return Patience(options.patience, options.stuck_retry_interval)
