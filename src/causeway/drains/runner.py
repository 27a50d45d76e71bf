"""The looks of a conductor at drains: whoever holds a drain's lease compares the wanted state with the present one, and acts.

A look ends early if another conductor has acquired the drain, or somebody has changed its state; the next look continues from the
database. Each drain has a thread of its own, so a cell that hangs delays only drains that need it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from causeway import errors
from causeway.drains import asking, closing, following, holds, measuring, newcomers, pace, replanning, windows
from causeway.drains.look import Look
from causeway.drains.pace import load_of
from causeway.model.drains import AT_REST, IN_WORK, OVER, Afterwards, DrainServerState, DrainState, How, Window
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.running.services import ConductorServices
from causeway.store.api import drains as store
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Seconds for which a stopping conductor waits for its looks.
PATIENCE = 10.0
_AT_WORK = [state for state in DrainState if state not in AT_REST]
# The number of reasons in a note.
_MOST_REASONS = 3


class Drains:
    """The part of a conductor that runs drains."""

    def __init__(self, services: ConductorServices, conductor: ConductorClient) -> None:
        self._services = services
        self._requests = Requests(services.conf, services.api, services.cells, conductor)
        self._threads = services.by_cell("Looking at drains")

    def look(self) -> None:
        """Begins a look at each drain that has work, unless the last look at it is still running."""
        for drain in store.search(self._services.api, states=_AT_WORK):
            self._threads.start(drain.id, partial(self._look_at, drain.id))

    def release(self) -> None:
        """Releases all drains, for a conductor that stops: others continue with them."""
        self._threads.wait(PATIENCE)
        try:
            store.release(self._services.api, self._services.life.owner)
        except errors.DatabaseFailed as failure:
            LOG.warning(
                "Drains could not be released, and wait until their leases are over: %s %s",
                failure.message,
                failure.details,
            )

    def _look_at(self, drain_id: str) -> None:
        try:
            look_at(self._services, self._requests, drain_id)
        except errors.TakenOver as lost:
            LOG.info("A look at drain %s ends: %s", drain_id, lost.message)
        except errors.CausewayError as failure:
            LOG.warning("A look at drain %s failed: %s %s", drain_id, failure.message, failure.details)


def look_at(services: ConductorServices, requests: Requests, drain_id: str) -> None:
    """Looks at a drain once. Does nothing if another conductor owns the drain. Raises TakenOver if the look ends early."""
    drain = store.acquire(services.api, drain_id, services.life.owner, services.conf.moves.lease)
    if drain is None:
        return
    look = Look(services, requests, drain, store.servers(services.api, drain.id))
    look.places = closing.places_of(services, drain.request.scope)
    _WORK[drain.state](look)


def _run(look: Look) -> None:
    closing.close(look)
    newcomers.add(look)
    following.follow(look)
    if look.drain.state is not DrainState.RUNNING:
        # So many moves have failed that the drain is paused now.
        return
    holds.refresh(look)
    replanning.reconsider(look)
    _start_evacuated(look)
    _begin_moves(look)
    if look.drain.state is not DrainState.RUNNING:
        return
    if _is_done(look):
        newcomers.note_coming(look)
    if _is_done(look):
        look.advance(DrainState.DONE, ended_at=utcnow(), note=_note(look))
        LOG.info("Drain %s is done", look.drain.id)
    else:
        _save_note(look, _note(look))


def _begin_moves(look: Look) -> None:
    """Requests as many moves as limits and windows allow. Instead of a busy server, the next one moves."""
    held_until = None
    if not windows.is_open(look.request.windows, utcnow()):
        held_until = _next_window(look)
        if held_until is None:
            return
    measuring.measure(look)
    room, load = look.room, load_of(look.servers, utcnow())
    silent = look.silent_cells()
    for server in pace.waiting(look.servers, look.request.first, utcnow()):
        if server.source_cell in silent:
            look.trouble(f"The database of {server.source_cell} does not answer.")
            continue
        if look.drain.state is not DrainState.RUNNING:
            return
        if not load.has_room(room, server) or replanning.needs_plan(look, server):
            continue
        if held_until is not None and server.how is not How.WARM:
            continue
        with look.apart(server):
            asking.ask_for_move(look, server, held_until=held_until)
        if server.state in pace.UNDER_WAY:
            load.add(server)


def _next_window(look: Look) -> datetime | None:
    """Returns when the next window opens, if it is time to copy disks for it; else None."""
    opening = next(windows.openings(look.request.windows, utcnow())).start
    ahead: float = look.services.conf.drains.warm_ahead
    return opening if (opening - utcnow()).total_seconds() <= ahead else None


def _is_done(look: Look) -> bool:
    """Whether the drain has nothing left to do, as far as a look that could read everything shows."""
    left_to_owners = {DrainServerState.MOVED} if look.request.afterwards is Afterwards.OWNERS else set()
    return not look.troubles and all(server.state in OVER | left_to_owners for server in look.servers)


def _note(look: Look) -> str | None:
    """Returns why the drain waits, or which servers are left; None if neither."""
    if look.troubles:
        return " ".join(look.troubles)
    states = Counter(server.state for server in look.servers)
    if states[DrainServerState.PENDING]:
        return _waits_for_window(look.request.windows)
    if any(states[state] for state in IN_WORK):
        return None
    if states[DrainServerState.BLOCKED]:
        reasons = Counter(server.why for server in look.servers if server.state is DrainServerState.BLOCKED)
        shown = [f"{why} ({count})" for why, count in reasons.most_common(_MOST_REASONS)]
        return f"Servers that can't go: {states[DrainServerState.BLOCKED]}. {' '.join(shown)}"
    return _unconfirmed(look)


def _unconfirmed(look: Look) -> str | None:
    count = sum(server.state is DrainServerState.MOVED for server in look.servers)
    return f"Servers that wait for their confirm: {count}." if count else None


def _waits_for_window(wanted: Sequence[Window]) -> str | None:
    if windows.is_open(wanted, utcnow()):
        return None
    opening = next(windows.openings(wanted, utcnow()))
    return f"It waits for a window, which opens at {opening.start:%Y-%m-%d %H:%M} UTC."


def _save_note(look: Look, note: str | None) -> None:
    if note != look.drain.note:
        store.change(look.services.api, look.drain, note=note)


def _pause(look: Look) -> None:
    following.follow(look)
    _start_evacuated(look)


def _start_evacuated(look: Look) -> bool:
    """Starts servers that have left a dead host, whatever the drain's state. Returns whether there may be more of them."""
    some = False
    for server in look.servers:
        if server.state is DrainServerState.PENDING and server.how is How.EVACUATE and server.began_at is not None:
            # If the next line fails, the server may still have to be started.
            some_here = True
            with look.apart(server):
                some_here = asking.start_on_target(look, server)
            some = some or some_here
    return some


def _end(look: Look, state: DrainState) -> None:
    """Ends the drain if no operation is running any more: opens its hosts and sets the state."""
    following.follow(look)
    starts_at_target = _start_evacuated(look)
    busy = IN_WORK | ({DrainServerState.MOVED} if state is DrainState.ROLLED_BACK else set())
    if starts_at_target or any(server.state in busy for server in look.servers) or not closing.open_again(look):
        _save_note(look, " ".join(look.troubles) or None)
        return
    look.advance(state, ended_at=utcnow(), note=_unconfirmed(look))
    LOG.info("Drain %s is %s", look.drain.id, state.value)


_WORK: dict[DrainState, Callable[[Look], None]] = {
    DrainState.RUNNING: _run,
    DrainState.PAUSED: _pause,
    DrainState.CANCELLING: partial(_end, state=DrainState.CANCELLED),
    DrainState.ROLLING_BACK: partial(_end, state=DrainState.ROLLED_BACK),
}
