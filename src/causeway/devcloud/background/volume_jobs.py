"""Does long work on volumes (filling and copying them) on a few threads behind the API."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import select

from causeway.devcloud.store import Store
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.volume import Snapshot, SnapshotProgress, Volume

LOG = logging.getLogger(__name__)

THREADS = 2


class VolumeJobs:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="devcloud-volume")
        with store.transaction() as session:
            # The work that these waited for ended with its process.
            for volume in session.scalars(select(Volume).where(Volume.status.in_(("creating", "downloading")))):
                volume.status = "error"
            # Except snapshots that Compute makes: it continues, and reports their outcome.
            ours = Snapshot.id.not_in(select(SnapshotProgress.snapshot_id))
            for snapshot in session.scalars(select(Snapshot).where(Snapshot.status == "creating", ours)):
                snapshot.status = "error"

    def fill(
        self,
        model: type[Volume] | type[Snapshot],
        row_id: str,
        work: Callable[[], None],
        becomes: str = "available",
    ) -> None:
        """Runs `work`, then sets the row's status to `becomes`, or to `error` if `work` raised OSError."""
        self._pool.submit(self._fill, model, row_id, work, becomes)

    def _fill(self, model: type[Volume] | type[Snapshot], row_id: str, work: Callable[[], None], becomes: str) -> None:
        status = "error"
        try:
            work()
            status = becomes
        except OSError as error:
            LOG.error("%s %s could not be filled: %s", model.__name__.lower(), row_id, error)
        finally:
            with self._store.transaction() as session:
                row = session.get(model, row_id)
                if isinstance(row, Volume | Snapshot):
                    row.status = status
                    row.updated_at = now()

    def close(self) -> None:
        self._pool.shutdown(wait=True)
