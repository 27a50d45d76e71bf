"""What this scheduler has just picked for server groups, until the databases show it.

Between the pick and the moment the server's record says where it is, the next request of the group would not see it.
Requests of one group take turns (`turn`), and a pick counts for a short time on top of what the databases say. A build
that fails meanwhile makes the count too high for that time, never too low.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_UNTIL_SEEN = 10.0
_TURNS = 64


class GroupPicks:
    def __init__(self) -> None:
        self._turns = [threading.Lock() for _ in range(_TURNS)]
        self._lock = threading.Lock()
        # group -> host -> (members there with the pick, until when it counts)
        self._picks: dict[str, dict[str, tuple[int, float]]] = {}

    @contextmanager
    def turn(self, group_uuid: str | None) -> Iterator[None]:
        """One request of a group at a time; requests without a group do not wait."""
        if group_uuid is None:
            yield
            return
        with self._turns[hash(group_uuid) % _TURNS]:
            yield

    def add(self, group_uuid: str, host: str, members_with_it: int) -> None:
        with self._lock:
            self._forget_old()
            until = time.monotonic() + SECONDS_UNTIL_SEEN
            self._picks.setdefault(group_uuid, {})[host] = (members_with_it, until)

    def seen(self, group_uuid: str, in_databases: dict[str, int]) -> dict[str, int]:
        """The members per host, recent picks included."""
        with self._lock:
            self._forget_old()
            picks = self._picks.get(group_uuid, {})
            hosts = in_databases.keys() | picks.keys()
            return {host: max(in_databases.get(host, 0), picks.get(host, (0, 0.0))[0]) for host in hosts}

    def _forget_old(self) -> None:
        now = time.monotonic()
        for group, picks in list(self._picks.items()):
            self._picks[group] = {host: pick for host, pick in picks.items() if pick[1] > now}
            if not self._picks[group]:
                del self._picks[group]
