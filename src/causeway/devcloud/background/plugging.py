"""Makes ports ACTIVE, and sends events to Compute.

A port is plugged when its active binding is on a known host, it is administratively up and belongs to a device. One background
thread plugs it as early as possible: Compute must be ready for `network-vif-plugged` before it makes the binding. The same
thread calls `Switches.on_ports_changed` and posts the events. A failed post is tried again with growing pauses, and at last
only logged, as in Network's notifier.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import requests
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from causeway.devcloud.access.catalog import internal_url
from causeway.devcloud.access.tokens import Tokens
from causeway.devcloud.bodies import Json
from causeway.devcloud.store import Store
from causeway.devcloud.switches import Backend, Switches
from causeway.devcloud.tables.identity import Project, User
from causeway.devcloud.tables.network import PLUGGED, Port

LOG = logging.getLogger(__name__)

RETRY_PAUSES = (0.2, 1.0, 3.0)
POST_TIMEOUT = 10.0
COMPUTE_OWNER = "compute:"

AfterCommit = list[Callable[[], None]]
"""Functions to call after the request's transaction."""


class Place(NamedTuple):
    """Where a port is plugged. ``going_to``: the host that its guest is going to, or ""."""

    host: str
    device_id: str
    mac_address: str
    going_to: str


Signature = Place | None
"""None if a port must not be plugged."""

MIGRATING_TO = "migrating_to"
LOOK_AGAIN = 0.02
"""Seconds until it is looked again whether a host has plugged a port."""


@dataclass(order=True)
class Job:
    due: float
    order: int
    run: Callable[[], None] = field(compare=False)


class Plugger:
    def __init__(
        self, store: Store, tokens: Tokens, switches: Switches, transport: requests.Session | None = None
    ) -> None:
        self._store, self._tokens, self._switches = store, tokens, switches
        self._condition = threading.Condition()
        self._jobs: list[Job] = []
        self._order = itertools.count()
        self._events: list[Json] = []
        self._changed = False
        self._closed = False
        self._token: tuple[str, float] | None = None
        self._own_http = transport is None
        self._http = transport or requests.Session()
        self._thread = threading.Thread(target=self._work, name="devcloud-plugger", daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Plugs the ports that were waiting when devcloud was last stopped."""
        with self._store.transaction() as session:
            waiting = [(row.id, self.signature(row)) for row in session.scalars(select(Port)) if row.status != "ACTIVE"]
        for port_id, wanted in waiting:
            if wanted is not None:
                self._plug_later(port_id, wanted)

    def signature(self, port: Port | None) -> Signature:
        active = port.active_binding if port is not None else None
        if port is None or active is None or active.vif_type not in PLUGGED:
            return None
        if not port.admin_state_up or not port.device_id:
            return None
        follows = self._backend(active.host) is not Backend.BRIDGE
        going_to = str(active.profile.get(MIGRATING_TO, "")) if follows else ""
        return Place(active.host, port.device_id, port.mac_address, going_to)

    def _backend(self, host: str) -> Backend:
        return self._switches.backends.get(host, Backend.BRIDGE)

    def reconcile(self, after_commit: AfterCommit, port: Port, before: Signature) -> None:
        """Unplugs and plugs a port according to its new state. Call it after a change of the port."""
        after_commit.append(self.notice_change)
        after = self.signature(port)
        if after != before:
            if port.status == "ACTIVE" and before is not None and self._backend(before.host) is Backend.OVN:
                self.notify(after_commit, port, "network-vif-unplugged")
            port.status = "DOWN"
        # An agent looks once more at a port that is updated while its guest is going elsewhere.
        if after is not None and (after != before or after.going_to):
            port_id, wanted = port.id, after
            after_commit.append(lambda: self._plug_later(port_id, wanted))

    def notify(self, after_commit: AfterCommit, port: Port, name: str) -> None:
        """Posts an event about a server's port after the transaction. Does nothing for ports of other devices."""
        event = _event(port, name)
        if event is not None:
            after_commit.append(lambda: self._post_later([event]))

    def notice_change(self) -> None:
        """Notes a change that may have to be wired."""
        if self._switches.on_ports_changed is None:
            return
        with self._condition:
            self._changed = True
            self._condition.notify()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join(POST_TIMEOUT + 1)
        if self._own_http:
            self._http.close()

    def _plug_later(self, port_id: str, wanted: Signature) -> None:
        self._schedule(self._switches.plug_delay, lambda: self._plug(port_id, wanted))

    def _post_later(self, events: list[Json], attempt: int = 0) -> None:
        pause = RETRY_PAUSES[attempt - 1] if attempt else 0.0
        self._schedule(pause, lambda: self._post(events, attempt))

    def _schedule(self, pause: float, run: Callable[[], None]) -> None:
        with self._condition:
            heapq.heappush(self._jobs, Job(time.monotonic() + pause, next(self._order), run))
            self._condition.notify()

    def _work(self) -> None:
        while True:
            changed, due = self._next()
            if self._closed:
                return
            if changed:
                self._call_hook()
            for job in due:
                try:
                    job.run()
                except (SQLAlchemyError, OSError):
                    LOG.exception("plugging a port failed")
            if self._events:
                events, self._events = self._events, []
                self._post(events, 0)

    def _next(self) -> tuple[bool, list[Job]]:
        with self._condition:
            while not self._closed and not self._changed:
                pause = self._jobs[0].due - time.monotonic() if self._jobs else None
                if pause is not None and pause <= 0:
                    break
                self._condition.wait(pause)
            changed, self._changed = self._changed, False
            due = []
            while self._jobs and self._jobs[0].due <= time.monotonic():
                due.append(heapq.heappop(self._jobs))
            return changed, due

    def _call_hook(self) -> None:
        hook = self._switches.on_ports_changed
        if hook is None:
            return
        try:
            hook()
        except Exception:
            LOG.exception("on_ports_changed failed")

    def _plug(self, port_id: str, wanted: Signature) -> None:
        with self._store.transaction() as session:
            port = session.get(Port, port_id)
            if port is None or port.status == "ACTIVE" or wanted is None or self.signature(port) != wanted:
                return
            # While the guest is going to another host, the port is wired there.
            host = wanted.going_to or wanted.host
            backend = self._backend(host)
            if host in self._switches.unpluggable_hosts:
                LOG.info("port %s stays DOWN: host %s is not to plug anything", port_id, host)
                return
            if (backend is Backend.OVN or wanted.going_to) and not self._is_plugged(host, port_id):
                self._schedule(LOOK_AGAIN, lambda: self._plug(port_id, wanted))
                return
            if backend is Backend.OVN or not wanted.going_to:
                port.status = "ACTIVE"
            event = _event(port, "network-vif-plugged")
        if event is not None:
            self._events += [{**event, "status": "completed"}] * (2 if backend is Backend.OVN else 1)

    def _is_plugged(self, host: str, port_id: str) -> bool:
        return self._switches.has_plugged is None or self._switches.has_plugged(host, port_id)

    def _post(self, events: list[Json], attempt: int) -> None:
        try:
            url, token = self._target()
            reply = self._http.post(
                f"{url}/os-server-external-events",
                json={"events": events},
                headers={"X-Auth-Token": token},
                timeout=POST_TIMEOUT,
            )
            failure = f"status {reply.status_code}" if reply.status_code >= 400 else ""
            final = 400 <= reply.status_code < 500 and reply.status_code != 401
        except (requests.RequestException, LookupError) as error:
            failure, final = type(error).__name__, False
        if not failure:
            return
        self._token = None
        names = ", ".join(f"{event['name']} of {event['tag']}" for event in events)
        if final or attempt >= len(RETRY_PAUSES):
            LOG.warning("Compute was not notified of %s: %s", names, failure)
            return
        LOG.info("notifying Compute of %s failed and is tried again: %s", names, failure)
        self._post_later(events, attempt + 1)

    def _target(self) -> tuple[str, str]:
        with self._store.transaction() as session:
            url = internal_url(session, "compute")
            if url is None:
                raise LookupError("the catalog has no compute endpoint")
            if self._token is None or self._token[1] < time.time() + 60:
                user = session.scalars(select(User).where(User.name == "neutron")).first()
                project = session.scalars(select(Project).where(Project.name == "service")).first()
                if user is None or project is None:
                    raise LookupError("there is no user neutron in a project service")
                token, record = self._tokens.issue(session, user, project, ["password"])
                if record is None:
                    raise LookupError("the user neutron has no role in the project service")
                self._token = (token, record.expires)
            return url, self._token[0]


def _event(port: Port, name: str) -> Json | None:
    if not port.device_owner.startswith(COMPUTE_OWNER):
        return None
    try:
        server = str(UUID(port.device_id))
    except ValueError:
        return None
    return {"name": name, "server_uuid": server, "tag": port.id}
