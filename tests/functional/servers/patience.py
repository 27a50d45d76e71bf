"""How long tests of whole clouds wait, and for what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from tests.functional.servers.deployed_cloud import DeployedCloud

PATIENCE, PATIENCE_BY_URL = 90.0, 240.0
# Seconds between two checks: at least, because a look costs what a step of an operation costs; and at most, because what is
# looked at may change without a transaction.
SHORTEST, LONGEST, BY_URL = 0.02, 0.1, 0.1
# Seconds after which it looks again although nothing that it traces has changed.
UNTRACED = 0.5
_CHANGES = "changes"


class Commits:
    """Counts the transactions of this process that changed rows: on an embedded cloud, little changes without one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def listen(self) -> None:
        # Not to the events of engines, which slow down each statement; and "commit" comes before the commit.
        event.listen(sa.Pool, "checkin", self._note_return)

    def _note_return(self, connection: Any, record: Any) -> None:
        changes = getattr(connection, "total_changes", None)
        # Only SQLite's driver counts rows. On a server, each return may be that of a change.
        if changes is None or changes != record.info.get(_CHANGES, 0):
            record.info[_CHANGES] = changes
            with self._changed:
                self.count += 1
                self._changed.notify_all()

    def wait_beyond(self, count: int, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.count > count, seconds)


COMMITS = Commits()
COMMITS.listen()


def until(
    look: Callable[[], Any], good: Callable[[Any], bool], what: str, trace: Callable[[], Any] | None = None
) -> Any:
    """What ``look`` sees when it is good. It looks again when something was committed; by URL, again and again.

    ``trace``, on an embedded cloud: costs much less than a look, and returns something else when what is looked at has changed.
    """
    by_url = DeployedCloud.in_use
    end = time.monotonic() + (PATIENCE_BY_URL if by_url else PATIENCE)
    followed, due = None, 0.0
    while True:
        before = COMMITS.count
        found = trace() if trace is not None and not by_url else None
        if found is None or found != followed or time.monotonic() >= due:
            seen = look()
            if good(seen):
                return seen
            assert time.monotonic() < end, f"waited too long for {what}; last seen: {seen}"
            followed, due = found, time.monotonic() + UNTRACED
        time.sleep(BY_URL if by_url else SHORTEST)
        if not by_url:
            COMMITS.wait_beyond(before, LONGEST)
