"""Moves whose hosts do not answer: which steps wait, and which continue without a fenced host.

`causeway.hosts.liveness` decides whether a host is fenced; this module applies that to the orders of moves. A step that only
removes something from a host (`clean_source`, `clean_target`) continues without a fenced host: the journal notes the order, and
the host carries the order out when it is up again, before anything else. A step that needs the host (`answering`) fails at once
if the host is fenced, and waits if the host is only down.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from causeway import errors
from causeway.hosts import liveness
from causeway.hosts.cleanups import missed_order
from causeway.hosts.liveness import HostLife
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.moves.move_run import Run
from causeway.store.api import cleanups
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

# The message is also the fault of a server that a move rolled back to its dead source.
IS_DEAD = "A host that the server needs is dead."


def at_source(run: Run) -> HostLife:
    return _look(run, run.source_database, run.memory.source_host)


def at_target(run: Run) -> HostLife:
    return _look(run, run.target_database, run.memory.target_host)


def recent_life(run: Run, host: str, life_of: Callable[[Run], HostLife]) -> HostLife:
    """Returns the host's life as the step before saw it a moment ago. Reads it anew if this step is repeated or undone."""
    seen = run.lives.get(host)
    if seen is None or run.is_repeated or run.is_undoing or not run.is_recent(seen[0]):
        return life_of(run)
    return seen[1]


def _look(run: Run, database: Database, host: str) -> HostLife:
    life = liveness.of_host(run.services, database, host)
    run.lives[host] = run.environment.clock.boot(), life
    return life


def clean_source(run: Run, what: Missed, instance: Instance, send: Callable[[], None]) -> None:
    """Has the source remove something: now with ``send``, or, if it is fenced, when it is up again (``what``).

    Raises HostDown if the source is down and not fenced.
    """
    _clean(run, recent_life(run, run.memory.source_host, at_source), run.memory.source_cell, what, instance, [], send)


def clean_target(
    run: Run, what: Missed, instance: Instance, devices: list[BlockDevice], send: Callable[[], None]
) -> None:
    """The same as `clean_source`, for the target."""
    _clean(
        run, recent_life(run, run.memory.target_host, at_target), run.memory.target_cell, what, instance, devices, send
    )


def undo_order(run: Run) -> Missed:
    """The order to note for a target that must remove what a resize or cold migration made there."""
    return Missed.UNDO if run.memory.is_cross_cell else Missed.UNDO_INSIDE_CELL


def note_source(run: Run, what: Missed) -> None:
    """Notes what the source must do when it is up again. The end of this step writes the note."""
    _note(run, run.memory.source_host, run.memory.source_cell, what, run.source_instance(), [])


def note_target(run: Run, host: str, what: Missed) -> None:
    """Notes what a host of the target cell must do when it is up again. The end of this step writes the note."""
    _note(run, host, run.memory.target_cell, what, run.source_instance(), [])


@contextmanager
def answering(run: Run, life_of: Callable[[Run], HostLife]) -> Iterator[None]:
    """Encloses an order to a host that the step needs. If the host does not answer, looks whether it is down or fenced.

    Raises HostDown instead of RpcTimeout if the host is down, HostFenced if it is fenced. In a repeated step or an undo, looks at
    the host before the order: an order to a host that is down would block a worker until the call times out.
    """
    if run.is_repeated or run.is_undoing:
        life = life_of(run)
        raise_if_fenced(life)
        raise_if_down(life)
    with _explained(run, life_of):
        yield


@contextmanager
def _explained(run: Run, life_of: Callable[[Run], HostLife]) -> Iterator[None]:
    """Encloses an order. If the host does not answer, raises an error that says why."""
    try:
        yield
    except errors.RpcTimeout as failure:
        life = life_of(run)
        raise_if_fenced(life, failure)
        raise_if_down(life, failure)
        raise


def raise_if_fenced(life: HostLife, cause: errors.CausewayError | None = None) -> None:
    if life.is_fenced:
        raise errors.HostFenced(
            IS_DEAD,
            details="; ".join([life.explained(), *([cause.details] if cause is not None else [])]),
        ) from cause


def raise_if_down(life: HostLife, cause: errors.CausewayError | None = None) -> None:
    if life.is_down:
        raise errors.HostDown(
            "A host that the server needs is down. The operation waits until the host is up again.",
            details=life.explained(),
        ) from cause


def _clean(
    run: Run,
    life: HostLife,
    cell_uuid: str,
    what: Missed,
    instance: Instance,
    devices: list[BlockDevice],
    send: Callable[[], None],
) -> None:
    if life.is_fenced:
        _note(run, life.host, cell_uuid, what, instance, devices)
        return
    raise_if_down(life)
    with _explained(run, lambda run: liveness.of_host(run.services, run.services.cells.database(cell_uuid), life.host)):
        send()


def _note(run: Run, host: str, cell_uuid: str, what: Missed, instance: Instance, devices: list[BlockDevice]) -> None:
    step = run.step.step if run.step is not None else ""
    missed = dataclasses.replace(
        missed_order(host, what, instance, run.token(step)),
        block_devices=devices,
        source_host=run.memory.source_host,
    )
    LOG.warning(
        "Move %s continues without host %s, which is fenced: the host must %s when it is up again",
        run.move.id,
        host,
        what,
    )
    run.with_next_save(lambda connection: cleanups.note_in(connection, host, cell_uuid, missed))
