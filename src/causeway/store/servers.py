"""Writes to a server's records, wherever it lives: for whoever is not the move that works on it.

A server may be moved to another cell between the moment when somebody looks up where it is and the moment when they write.
The move closes the records that it leaves (`causeway.store.cell.instances`), so the write does not get lost: it is refused
there, the mapping is asked again, and it is made where the server lives. Records are closed for some milliseconds. Whoever comes
just then waits; if the conductor that moves the server has died, the answer asks the caller to try again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.model.sagas import ENDED
from causeway.store.api import journal, mappings
from causeway.store.cell import instances
from causeway.store.cells import Cells

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds that a writer waits for the end of a switch, and between two looks: at first, doubled each time, and at most.
PATIENCE, FIRST_PAUSE, LONGEST_PAUSE = 10.0, 0.01, 0.5


def change(cells: Cells, uuid: str, cell_uuid: str, work: Callable[[sa.Connection], T], *, follow: bool = True) -> T:
    """``work`` in one transaction of the cell where the server lives; ``cell_uuid``: where it was found just now.

    ``follow`` False: for work that is of use in that cell only; RecordsClosed or ServerNotFound if the server has left it.

    ``work`` must take the server's row before it writes anything (`update_in`, `swap_in` or `touch_in` of
    `causeway.store.cell.instances`), and may be called several times. Raises what it raises; RecordsClosed if the server is still
    between two cells when patience is at its end.
    """
    end, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
    while True:
        try:
            with cells.database(cell_uuid).write() as connection:
                return work(connection)
        except (errors.RecordsClosed, errors.ServerNotFound) as refusal:
            home = mappings.get(cells.api, uuid).cell_uuid
            if home is not None and home != cell_uuid:
                if not follow:
                    raise
                LOG.info("Server %s was moved meanwhile: it is written to where it lives", uuid)
                cell_uuid = home
                continue
            if isinstance(refusal, errors.ServerNotFound):
                raise
            if _opened(cells, uuid, cell_uuid):
                continue
            if time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _opened(cells: Cells, uuid: str, cell_uuid: str) -> bool:
    """Opens records whose move has no more need of them; False if it has.

    The mapping names this cell. So a hidden copy that a move wrote is the server itself by now; and records that a move closed
    which has ended stay where they are.
    """
    database = cells.database(cell_uuid)
    move_id, is_copy = instances.closed_by(database, uuid)
    if move_id is None:
        return True
    if not is_copy and not _has_ended(cells, move_id):
        return False
    # The mapping is asked after the row was read: it may have been written for a move that has not switched it yet.
    if mappings.get(cells.api, uuid).cell_uuid != cell_uuid:
        return False
    instances.show(database, uuid, move_id)
    return True


def _has_ended(cells: Cells, move_id: str) -> bool:
    try:
        return journal.get(cells.api, move_id).state in ENDED
    except errors.NotFound:
        return True
