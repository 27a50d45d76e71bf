"""Writes to a server's records wherever it lives, for callers other than the move that works on it.

A server may move to another cell after a caller looked up its cell, and before the caller writes. The move closes the records
that it leaves (`causeway.store.cell.instances`), so the write is not lost: it is refused there, the mapping is read again, and
the write is made where the server lives. Records are closed for some milliseconds, in which a writer waits. If the conductor
that moves the server has died, the error asks the caller to try again.
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

# Seconds: how long a writer waits for the end of a switch; the first pause between two checks, which doubles; the longest pause.
PATIENCE, FIRST_PAUSE, LONGEST_PAUSE = 10.0, 0.01, 0.5


def change(cells: Cells, uuid: str, cell_uuid: str, work: Callable[[sa.Connection], T], *, follow: bool = True) -> T:
    """Calls ``work`` in one transaction of the cell where the server lives. ``cell_uuid``: where the caller found it.

    ``follow`` False: for work that only makes sense in that cell. Raises RecordsClosed or ServerNotFound if the server has left
    it.

    ``work`` must lock the server's row before it writes anything (`update_in`, `swap_in` or `touch_in` of
    `causeway.store.cell.instances`), and may be called several times. Raises what it raises, and RecordsClosed if the server is
    still between two cells when the patience is over.
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
                LOG.info("Server %s was moved meanwhile: the write is repeated in its new cell", uuid)
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
    """Opens records that their move no longer needs closed. Returns False if it does.

    The mapping names this cell. So a hidden copy of a move is the server itself by now, and records that were closed by a move
    that has ended stay here.
    """
    database = cells.database(cell_uuid)
    operation_id, is_copy = instances.closed_by(database, uuid)
    if operation_id is None:
        return True
    if not is_copy and not _has_ended(cells, operation_id):
        return False
    # Read the mapping after the row: the row may have been written for a move that has not switched the mapping yet.
    if mappings.get(cells.api, uuid).cell_uuid != cell_uuid:
        return False
    instances.show(database, uuid, operation_id)
    return True


def _has_ended(cells: Cells, operation_id: str) -> bool:
    try:
        return journal.get(cells.api, operation_id).state in ENDED
    except errors.NotFound:
        return True
