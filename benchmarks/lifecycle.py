"""The operations of a server's life that are no moves: made, given a volume, shelved and brought back, deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from benchmarks.cloud import EVENTS, MeasuredCloud, Timing
from benchmarks.counting import Counts
from causeway.context import admin_context
from causeway.model.states import VmState
from causeway.store.cell import block_devices, instances

_SERVERS, _DEVICES = instances.TABLE, block_devices.TABLE


@dataclass
class Cost:
    """``timing`` until the result is visible, ``counts`` until the end of all that the operation caused."""

    timing: Timing
    counts: Counts


class Lifecycle:
    """Lets servers live, one after the other; a context manager."""

    def __init__(self, cloud: MeasuredCloud) -> None:
        self._cloud = cloud
        self._stack = ExitStack()
        self._looking = threading.Lock()

    def __enter__(self) -> Lifecycle:
        cloud = self._cloud
        self._volume_id = cloud.make_volume()
        # Which host a server gets is chance, and should make no difference: each has the image already.
        for compute in cloud.embedded.computes.values():
            compute.host.image_cache.fetch(admin_context(), cloud.image_id)
        # Connections of our own: what is looked at over them is not counted.
        self._cells = []
        for cell in cloud.embedded.cells.mappings(cell0=False):
            engine = sa.create_engine(cloud.embedded.cells.database(cell.uuid).url, isolation_level="AUTOCOMMIT")
            self._stack.callback(engine.dispose)
            self._cells.append(self._stack.enter_context(engine.connect()))
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    def live(self) -> dict[str, Cost]:
        """What each operation of one server's life costs, in this order."""
        cloud, found = self._cloud, dict[str, Cost]()
        wanted = cloud.describe()

        def is_in(state: VmState) -> Callable[[], bool]:
            return lambda: self._states(wanted["name"]) == [(state.value, None)]

        found["create"], answer = self._do("POST", "/servers", {"server": wanted}, is_in(VmState.ACTIVE), events=1)
        server = f"/servers/{answer['server']['id']}"
        # The answer comes when the guest has the volume.
        volume = {"volumeAttachment": {"volumeId": self._volume_id}}
        found["attach"], _answer = self._do("POST", f"{server}/os-volume_attachments", volume)
        found["detach"], _answer = self._do(
            "DELETE", f"{server}/os-volume_attachments/{self._volume_id}", None, lambda: not self._is_attached()
        )
        port = {"interfaceAttachment": {"net_id": cloud.network_id}}
        # The answer comes when the guest has the port.
        found["attach port"], answer = self._do("POST", f"{server}/os-interface", port, events=1)
        port_id = answer["interfaceAttachment"]["port_id"]
        found["detach port"], _answer = self._do(
            "DELETE", f"{server}/os-interface/{port_id}", None, lambda: not self._is_plugged(port_id), events=1
        )
        found["shelve"], _answer = self._do(
            "POST", f"{server}/action", {"shelve": None}, is_in(VmState.SHELVED_OFFLOADED)
        )
        found["unshelve"], _answer = self._do(
            "POST", f"{server}/action", {"unshelve": None}, is_in(VmState.ACTIVE), events=1
        )
        found["delete"], _answer = self._do("DELETE", server, None, lambda: not self._states(wanted["name"]), events=1)
        return found

    def _do(
        self, method: str, path: str, body: Any, is_visible: Callable[[], bool] | None = None, *, events: int = 0
    ) -> tuple[Cost, Any]:
        """Sends a request and waits for the end of all that it causes; with the answer.

        ``is_visible``: whether the API shows the result; None if it is there when the request is answered. ``events``: how
        often the network service tells us something because of it.
        """
        cloud, work, hooks = self._cloud, self._cloud.work, self._cloud.hooks
        work.wait(work.is_done, "the end of what was before")
        before, spent = cloud.counts(), hooks.spent.copy()
        reported = hooks.api_requests[EVENTS] + events
        if is_visible is not None:
            work.watch(is_visible)
        answer = cloud.client.call(method, path, body)
        what = f"{method} {path}"
        if is_visible is not None:
            work.wait(lambda: work.visible is not None or work.is_done(), what)
        within = hooks.spent_since(spent)
        work.wait(lambda: work.is_done() and hooks.api_requests[EVENTS] >= reported, f"the end of {what}")
        visible = work.answered if is_visible is None else work.visible
        if visible is None:
            raise RuntimeError(f"{what} has ended, and its result is not what was wanted")
        return Cost(Timing(visible - work.arrived, within), cloud.counts() - before), answer

    def _states(self, name: str) -> list[tuple[Any, ...]]:
        """States of the server of this name, of one row in one cell; none if the API answers 404."""
        query = sa.select(_SERVERS.c.vm_state, _SERVERS.c.task_state).where(
            _SERVERS.c.display_name == name, _SERVERS.c.deleted.is_(False)
        )
        return self._rows(query)

    def _is_attached(self) -> bool:
        query = sa.select(_DEVICES.c.id).where(_DEVICES.c.volume_id == self._volume_id, _DEVICES.c.deleted.is_(False))
        return bool(self._rows(query))

    def _is_plugged(self, port_id: str) -> bool:
        query = sa.select(_SERVERS.c.id).where(
            sa.cast(_SERVERS.c.network_info, sa.Text).contains(port_id), _SERVERS.c.deleted.is_(False)
        )
        return bool(self._rows(query))

    def _rows(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        # Any thread that has written something looks.
        with self._looking:
            for connection in self._cells:
                found += [tuple(row) for row in connection.execute(query)]
        return found
