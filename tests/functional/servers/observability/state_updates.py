"""A consumer of ``instance.update``."""

from __future__ import annotations

import threading
from typing import Any

from tests.functional.servers.moves_cloud import Cloud, until

# (publisher's service, VM state before, after, task state before, after)
Update = tuple[str, str | None, str, str | None, str | None]


class Updates:
    """Hears all notifications of servers, and gives the changes of states in their order, by publisher."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: list[tuple[str, str, dict[str, Any]]] = []

    def info(self, _context: Any, publisher_id: str, event_type: str, payload: Any, _metadata: Any) -> None:
        if event_type.startswith("instance."):
            with self._lock:
                self._heard.append((event_type, publisher_id, payload["nova_object.data"]))

    error = info

    def clear(self) -> None:
        with self._lock:
            self._heard.clear()

    def payloads(self, event: str, server: Any) -> list[tuple[str, dict[str, Any]]]:
        """(publisher, payload) of a server's events of one type."""
        with self._lock:
            return [
                (publisher, data)
                for found, publisher, data in self._heard
                if (found, data["uuid"]) == (event, server.id)
            ]

    def wait(self, event: str, server: Any) -> dict[str, Any]:
        """The payload of the first such event."""
        until(lambda: self.payloads(event, server), lambda found: found, f"{event} to be notified")
        return self.payloads(event, server)[0][1]

    def of(self, server: Any) -> list[Update]:
        """What different publishers say comes in no order, so the API's updates are first here."""
        found = []
        for publisher, data in self.payloads("instance.update", server):
            change = data["state_update"]["nova_object.data"]
            states = (change["old_state"], change["state"], change["old_task_state"], change["new_task_state"])
            assert (data["state"], data["task_state"]) == (states[1], states[3])
            found.append((publisher.partition(":")[0], *states))
        return sorted(found, key=lambda update: update[0])

    def all(self, server: Any, count: int) -> list[Update]:
        """The updates of a server, once there are that many."""
        until(lambda: self.of(server), lambda found: len(found) >= count, f"{count} updates; heard {self.of(server)}")
        return self.of(server)


def stopped(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.settle()


def deleted(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
