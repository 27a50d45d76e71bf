"""Waits for ``network-vif-plugged``.

The network service plugs a port and sends the event as soon as the binding is active. That is often before the guest exists, and
happens only once. So a caller opens a watch *before* it binds ports, and the watch keeps early events. Events that were sent
while the API, a queue or a database was unavailable are lost, so a waiter asks the network service after a while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from causeway import errors
from causeway.model.events import ExternalEvent

LOG = logging.getLogger(__name__)

PLUGGED, FAILED = "network-vif-plugged", "failed"
# Seconds without an event after which a waiter asks the network service.
LOOK_EVERY = 10.0


class Watch:
    """The events of one server since the watch was opened."""

    def __init__(self, instance_uuid: str) -> None:
        self.instance_uuid = instance_uuid
        self._changed = threading.Condition()
        self._plugged: dict[str, str] = {}
        self._closed = False
        #: ports for which a wait ended, and which were not plugged
        self.unplugged: frozenset[str] = frozenset()

    def close(self) -> None:
        """Ends all waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def deliver(self, event: ExternalEvent) -> None:
        if event.name == PLUGGED and event.tag:
            with self._changed:
                self._plugged[event.tag] = event.status
                self._changed.notify_all()

    @contextmanager
    def plugged(
        self,
        ports: Iterable[str],
        timeout: float,
        *,
        fatal: bool,
        look: Callable[[], set[str]] | None = None,
        shown: Collection[str] = (),
    ) -> Iterator[None]:
        """A context that, at its end, waits until every port was plugged.

        ``timeout`` in seconds; 0 does not wait. ``look`` returns the ports that are plugged now. ``shown``: ports of which only
        ``look`` is believed, because their events may have come before the watch, or may be late ones of an earlier plug.

        Raises VifPluggingFailed if a port was not plugged in time, or could not be. If not ``fatal``, the guest continues without
        the port, which is in `unplugged` then.
        """
        yield
        wanted = set(ports)
        if not wanted or timeout <= 0:
            return
        end = time.monotonic() + timeout
        if shown and look is not None:
            self._look(look, shown)
        while True:
            heard = self._heard_of(wanted, min(LOOK_EVERY, end - time.monotonic()))
            if look is not None and (shown or not heard):
                self._look(look, shown)
            if self._heard_of(wanted, 0.0) or time.monotonic() >= end:
                break
        with self._changed:
            missing = sorted(wanted - self._plugged.keys())
            failed = sorted(port for port in wanted & self._plugged.keys() if self._plugged[port] == FAILED)
            if missing and self._closed:
                raise errors.Interrupted(f"The host was stopped while it waited for port {', '.join(missing)}.")
        self.unplugged = frozenset([*missing, *failed])
        if fatal and missing:
            raise errors.VifPluggingFailed(
                f"The network service did not plug port {', '.join(missing)} of server {self.instance_uuid} "
                f"within {timeout:.0f} seconds."
            )
        if fatal and failed:
            raise errors.VifPluggingFailed(
                f"The network service could not plug port {', '.join(failed)} of server {self.instance_uuid}."
            )

    def _heard_of(self, wanted: set[str], timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or wanted <= self._plugged.keys(), timeout)

    def _look(self, look: Callable[[], set[str]], shown: Collection[str] = ()) -> None:
        """Notes the ports that are plugged now, and discards the events of those in ``shown`` that are not."""
        try:
            plugged = look()
        except errors.CausewayError as failure:
            LOG.warning(
                "Server %s waits for its ports, whose state is unknown: %s", self.instance_uuid, failure.message
            )
            return
        with self._changed:
            for port in shown:
                if port not in plugged and self._plugged.get(port) != FAILED:
                    self._plugged.pop(port, None)
            for port in plugged:
                self._plugged.setdefault(port, "completed")


class VifEvents:
    """The open watches of a host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[str, list[Watch]] = {}

    @contextmanager
    def watch(self, instance_uuid: str) -> Iterator[Watch]:
        """Keeps the server's events until the context ends."""
        watch = Watch(instance_uuid)
        with self._lock:
            self._watches.setdefault(instance_uuid, []).append(watch)
        try:
            yield watch
        finally:
            with self._lock:
                self._watches[instance_uuid].remove(watch)
                if not self._watches[instance_uuid]:
                    del self._watches[instance_uuid]

    def close(self) -> None:
        """Ends all waits, because the host is being stopped."""
        with self._lock:
            for watch in (watch for watches in self._watches.values() for watch in watches):
                watch.close()

    def deliver(self, event: ExternalEvent) -> bool:
        """Passes an event to the watches of its server; returns False if there is none."""
        with self._lock:
            watches = list(self._watches.get(event.server_uuid, []))
        for watch in watches:
            watch.deliver(event)
        return bool(watches)
