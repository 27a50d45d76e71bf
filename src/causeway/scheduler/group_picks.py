"""The hosts that this scheduler has just picked for members of server groups, until the databases show them.

Until a server's record says where it is, the next request of its group would not see it. So requests of one group take turns
(`turn`), and a pick counts for a short time in addition to what the databases say. If a build fails, others see one member too
many for that time, never one too few. A deleted server is no longer a member, so its pick does not count. Picks of other
schedulers are not known here: the conductor checks again when it claims the host (`causeway.hosts.groups`).
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
        # group -> server -> (host, until when it counts)
        self._picks: dict[str, dict[str, tuple[str, float]]] = {}

    @contextmanager
    def turn(self, group_uuid: str | None) -> Iterator[None]:
        """Lets one request of a group in at a time. Requests without a group do not wait."""
        if group_uuid is None:
            yield
            return
        with self._turns[hash(group_uuid) % _TURNS]:
            yield

    def add(self, group_uuid: str, instance_uuid: str, host: str) -> None:
        with self._lock:
            self._discard_old()
            self._picks.setdefault(group_uuid, {})[instance_uuid] = (host, time.monotonic() + SECONDS_UNTIL_SEEN)

    def seen(self, group_uuid: str, members: set[str], in_databases: dict[str, set[str]]) -> dict[str, set[str]]:
        """The ``members`` by host, recent picks included."""
        found = {host: set(members) for host, members in in_databases.items()}
        with self._lock:
            self._discard_old()
            for instance_uuid, (host, _until) in self._picks.get(group_uuid, {}).items():
                if instance_uuid in members:
                    found.setdefault(host, set()).add(instance_uuid)
        return found

    def _discard_old(self) -> None:
        now = time.monotonic()
        for group, picks in list(self._picks.items()):
            self._picks[group] = {uuid: pick for uuid, pick in picks.items() if pick[1] > now}
            if not self._picks[group]:
                del self._picks[group]
