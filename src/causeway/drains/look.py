"""One look at one drain: the data that its parts share, and the methods with which they record their findings."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa
from oslo_context import context as oslo_context

from causeway import errors
from causeway.context import RequestContext
from causeway.drains import notices
from causeway.drains.climbing import room_of
from causeway.drains.pace import Room
from causeway.drains.paths import rate_of
from causeway.model.drains import OVER, Drain, DrainRequest, DrainServer, DrainServerState, DrainState, Pacing
from causeway.requests.of_servers import Requests
from causeway.running.services import ConductorServices
from causeway.store.api import drains as store
from causeway.store.api import mappings
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# The part of a lease's time after which a look renews it.
_RENEWED_AFTER = 1 / 3
# How often the pause before another attempt is doubled.
_MOST_DOUBLED = 6


@dataclass
class Look:
    """``drain``: this conductor has held its lease since ``acquired_at`` (monotonic seconds). ``servers``: all of the drain's.

    ``places``: the hosts of its scope, with the uuids of their cells.
    """

    services: ConductorServices
    requests: Requests
    drain: Drain
    servers: list[DrainServer] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    #: sentences that say what prevented the look from reading or doing everything
    troubles: list[str] = field(default_factory=list)
    #: names of cells that did not answer in this look
    silent: set[str] = field(default_factory=set)
    acquired_at: float = field(default_factory=time.monotonic)

    @property
    def request(self) -> DrainRequest:
        return self.drain.request

    @property
    def room(self) -> Room:
        """How many moves each resource takes at once."""
        return room_of(self.request.limits, self.drain.pacing or Pacing(), rate_of(self.services.conf))

    @property
    def names_targets(self) -> bool:
        targets = self.request.targets
        return bool(targets.cells or targets.hosts or targets.aggregates)

    def cell_name(self, cell_uuid: str | None) -> str | None:
        """The name of a cell, as the rows of a drain's servers have it."""
        return None if cell_uuid is None else self.services.cells.mapping(cell_uuid).name

    def cell_named(self, name: str | None) -> str | None:
        """The uuid of a cell; None if no cell has that name."""
        cells = self.services.cells.mappings(cell0=False)
        return next((cell.uuid for cell in cells if cell.name == name), None)

    def silent_cells(self) -> set[str]:
        """The names of cells that did not answer just now, so that nothing can be requested for their servers."""
        cells = self.services.cells
        return self.silent | {cell.name for cell in cells.mappings(cell0=False) if cells.is_down(cell.uuid)}

    def renew(self) -> None:
        """Renews the lease when it is time. Raises TakenOver if the look must end: the lease was lost, or the conductor stops."""
        if self.services.stopping.is_set():
            raise errors.TakenOver(f"Drain {self.drain.id} is for other conductors now: this one stops.")
        lease = self.services.conf.moves.lease
        if time.monotonic() - self.acquired_at < lease * _RENEWED_AFTER:
            return
        began = time.monotonic()
        renewed = store.acquire(self.services.api, self.drain.id, self.services.life.owner, lease)
        if renewed is None or (renewed.epoch, renewed.state) != (self.drain.epoch, self.drain.state):
            raise errors.TakenOver(f"Drain {self.drain.id} was taken over, or its state was changed.")
        self.acquired_at = began

    def change(self, server: DrainServer, **changes: Any) -> None:
        """Changes a server's row. Raises TakenOver."""
        state = changes.get("state")
        if state in OVER:
            changes.setdefault("ended_at", utcnow())
        if state is not None and state is not server.state:
            LOG.info(
                "Drain %s: server %s is %s%s",
                self.drain.id,
                server.instance_uuid,
                state.value,
                f": {changes['why']}" if changes.get("why") else "",
            )
        before = server.state
        store.change_server(self.services.api, self.drain, server, **changes)
        if server.state is not before:
            notices.notify_of_server(self.services.notifier, self.context(), self.drain, server, before)

    def advance(self, state: DrainState, **changes: Any) -> None:
        """Changes the state of the drain. Raises TakenOver, also if the state was changed meanwhile."""
        store.advance(self.services.api, self.drain, state, **changes)
        notices.notify_of_drain(self.services.notifier, self.context(), self.drain)

    def context(self) -> RequestContext:
        """The context of a new request on behalf of the administrator who made the drain."""
        return RequestContext(
            request_id=oslo_context.generate_request_id(),
            user_id=self.drain.user_id,
            project_id=self.drain.project_id,
            is_admin=True,
            roles=["admin"],
            overwrite=False,
        )

    def still_wanted(self) -> Callable[[sa.Connection], None]:
        """Returns a check for the transaction of a request. It fails if the drain was taken over or has another state."""
        return partial(store.check_owner_in, drain=self.drain, state=self.drain.state)

    @contextmanager
    def apart(self, server: DrainServer) -> Iterator[None]:
        """Notes a failure with one server, so that the look continues with the others."""
        self.renew()
        try:
            yield
        except errors.TakenOver:
            raise
        except errors.CausewayError as failure:
            LOG.warning(
                "Drain %s: server %s: %s %s", self.drain.id, server.instance_uuid, failure.message, failure.details
            )
            if isinstance(failure, errors.DatabaseFailed):
                # If the API database fails, all other servers would fail for the same reason, each after a timeout.
                self.services.api.ping()
        except Exception as failure:
            LOG.exception("Drain %s: server %s failed unexpectedly", self.drain.id, server.instance_uuid)
            why = f"It failed unexpectedly: {type(failure).__name__}: {failure}"
            if server.state is DrainServerState.PENDING:
                self.fail(server, why)
            else:
                # The next look finds out whether the move was requested.
                self.change(server, attempts=server.attempts + 1, why=why)

    def trouble(self, what: str) -> None:
        """Notes, once, what prevents the look from reading or doing everything."""
        if what not in self.troubles:
            self.troubles.append(what)

    def pass_over(self, server: DrainServer, why: str) -> None:
        self.change(server, state=DrainServerState.PASSED_OVER, why=why)

    def block(self, server: DrainServer, why: str, help: str | None = None) -> None:
        """Notes that a server can't go now. Later looks try again."""
        if server.state is not DrainServerState.BLOCKED or server.why != why:
            LOG.info("Drain %s: server %s can't go: %s", self.drain.id, server.instance_uuid, why)
        again = utcnow() + timedelta(seconds=self.services.conf.drains.retry_pause)
        self.change(server, state=DrainServerState.BLOCKED, why=why, help=help, not_before=again)

    def fail(self, server: DrainServer, why: str, *, for_good: bool = False) -> None:
        """Notes that a move failed. Later looks try it again unless it was tried often enough or can't succeed (``for_good``)."""
        attempts = server.attempts + 1
        if not for_good and attempts <= self.request.retries:
            self.change(
                server,
                state=DrainServerState.PENDING,
                attempts=attempts,
                not_before=utcnow() + self.pause_after(attempts),
                why=why,
                # The target may be the cause.
                target_host=None,
                target_cell=None,
            )
            notices.notify_of_failure(self.services.notifier, self.context(), self.drain, server)
            return
        # The drain is paused before the server's row is written, in case this conductor dies in between.
        self._pause_if_enough(server)
        self.change(server, state=DrainServerState.FAILED, attempts=attempts, why=why)

    def pause_after(self, attempts: int) -> timedelta:
        seconds: float = self.services.conf.drains.retry_pause
        return timedelta(seconds=seconds * 2 ** min(attempts - 1, _MOST_DOUBLED))

    def _pause_if_enough(self, server: DrainServer) -> None:
        stop_after = self.request.stop_after
        if not stop_after or self.drain.state is not DrainState.RUNNING:
            return
        failed = sum(each.state is DrainServerState.FAILED for each in self.servers if each is not server) + 1
        if failed >= stop_after:
            note = (
                f"It paused by itself: the moves of {failed} server{'s' if failed > 1 else ''} failed, the last one that of"
                f" {server.name or server.instance_uuid}. Resume it when the cause is gone, or cancel it."
            )
            self.advance(DrainState.PAUSED, note=note)

    def is_gone(self, server: DrainServer) -> bool:
        """Whether a server was deleted, or is about to be."""
        try:
            return mappings.get(self.services.api, server.instance_uuid).queued_for_delete
        except errors.ServerNotFound:
            return True
