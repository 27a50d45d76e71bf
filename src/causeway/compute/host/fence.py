"""Decides whose orders a compute follows.

For each move it records the highest epoch seen, and the orders that were carried out. An order of an older epoch comes from a
conductor that lost the move, and is refused. An order that is already being carried out is joined; one that was carried out is
answered with its recorded outcome. So no step takes effect twice, however often it is ordered.

An order can also arrive too late: its sender stopped waiting and undid its effects, and then the order arrives, with the same
epoch. No move does again what it has undone on a host, so `UNDONE_BY` names orders that are refused for good after others.

`DONE_ANEW` names exceptions. After a takeover, the new conductor may send these orders again to the same host, and they are
carried out again: what earlier epochs did or undid does not count. Orders of earlier epochs are still refused.

The records are small files, which outlive the process, and are deleted long after their move. If a record can't be read, the
journal decides whether the order is wanted now: it must be of the present epoch, and a forward order needs a move that goes
forward.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec
from oslo_concurrency import lockutils

from causeway import durable, errors
from causeway.compute.host.disk_work import DiskWork
from causeway.faults import injector
from causeway.model.outcomes import FIRST_EPOCH, OperationToken

T = TypeVar("T")

# method -> the orders of the same move after which this host refuses it
UNDONE_BY = {
    "prep_snapshot_based_resize_at_dest": ("drop_move_claim", "drop_move_at_dest"),
    "prep_snapshot_based_resize_at_source": ("restore_at_source",),
    "finish_snapshot_based_resize_at_dest": ("drop_move_claim", "drop_move_at_dest"),
    "send_offered": ("restore_at_source", "wake_guest_at_source"),
    "begin_round": ("end_rounds",),
    "send_part": ("end_rounds",),
    "limit_writes": ("end_rounds",),
    "receive_round": ("drop_move_claim", "drop_move_at_dest", "discard_copies"),
    "receive_part": ("drop_move_claim", "drop_move_at_dest", "discard_copies"),
    "rebuild_guest": ("remove_guest",),
    "start_guest": ("stop_guest",),
    "store_disk": ("restore_guest",),
    "store_image": ("restore_guest",),
    "upload_disk": ("restore_guest",),
    "build_guest": ("undo_build",),
    "rescue_guest": ("undo_rescue",),
    "unrescue_guest": ("undo_unrescue",),
    "connect_volume": ("disconnect_volume",),
    "claim_port_device": ("unplug_port",),
    "copy_volume": ("end_volume_swap",),
    "plug_port": ("unplug_port",),
    "check_can_live_migrate_destination": ("drop_move_claim", "rollback_live_migration_at_destination"),
    "pre_live_migration": ("drop_move_claim", "rollback_live_migration_at_destination"),
    "live_migration": ("rollback_live_migration_at_source",),
    "detach_port_devices": ("attach_port_devices",),
    "save_guest_at_source": ("wake_guest_at_source",),
    "wake_guest_at_dest": ("drop_move_claim", "drop_move_at_dest"),
}
# Orders that a new epoch carries out again, though they were done: the guest may be another one by now, or be destroyed, or have
# its devices again because a hard reboot made it anew.
DONE_ANEW = frozenset({"build_guest", "undo_build", "disconnect_volume", "unplug_port"})

# Orders of 0.1.0 for moves inside a cell -> the present ones for all moves. A host may be upgraded while a move is under way.
_FORMER_NAMES = {
    "prep_resize": "prep_snapshot_based_resize_at_dest",
    "resize_instance": "prep_snapshot_based_resize_at_source",
    "finish_resize": "finish_snapshot_based_resize_at_dest",
    "confirm_resize": "confirm_snapshot_based_resize_at_source",
    "revert_resize": "drop_move_at_dest",
    "finish_revert_resize": "restore_at_source",
}

LOG = logging.getLogger(__name__)

# Seconds after which a move's record is deleted.
KEPT_FOR = 7 * 24 * 3600
# Seconds between two checks for old records.
LOOK_EVERY = 24 * 3600


@dataclass
class _Record:
    """``torn``: the record could not be read, so what the move had done on this host is unknown."""

    epoch: int = 0
    # method -> outcome
    outcomes: dict[str, Any] = field(default_factory=dict)
    torn: bool = False


_DECODER = msgspec.json.Decoder(_Record)

# Asks the journal about an order, given its token and whether it leads forward. If the order is late, raises what `once` must
# raise.
Ask = Callable[[OperationToken, bool], None]


def _nobody_to_ask(token: OperationToken, _forward: bool) -> None:
    raise errors.GuestFailed(f"A record of move {token.operation_id} can't be read, and there is no conductor to ask.")


class Fence:
    """The records of one host."""

    def __init__(self, directory: Path, host: str, ask: Ask = _nobody_to_ask) -> None:
        """``ask``: is called to find whether an order is late, if the record of its move is torn."""
        self.host = host
        self.disk_work = DiskWork()
        self._directory = directory
        self._ask = ask
        durable.make_folder(directory)
        durable.discard_unfinished(directory)
        self._delete_old()

    def once(self, token: OperationToken, method: str, outcome: type[T], work: Callable[[], T]) -> T:
        """Does ``work`` unless it was done for this move, and returns its outcome. A failure is not recorded.

        Raises TakenOver if the token is older than one that was seen, ClaimRefused if the work was undone already.
        """
        if time.monotonic() >= self._looks_at:
            self._delete_old()
        # The same order may arrive twice. The second one waits, and finds the outcome of the first.
        with lockutils.lock(f"{self._directory}-{token.operation_id}"):
            path = self._directory / f"{token.operation_id}.json"
            record = self._read(path)
            _check_epoch(token, record, method)
            if token.epoch > record.epoch:
                record.epoch = token.epoch
                if method in DONE_ANEW:
                    for former in (method, *UNDONE_BY.get(method, ())):
                        record.outcomes.pop(former, None)
                self._write_epoch(path, record)
            if any(undoing in record.outcomes for undoing in UNDONE_BY.get(method, ())):
                raise self._undone(token)
            if method in record.outcomes:
                return msgspec.convert(record.outcomes[method], outcome)
            if record.torn:
                # The record is lost that said whether this was done or undone. The journal knows whether it is wanted now. If it
                # is done again, it finds what is there.
                self._ask(token, method in UNDONE_BY)
            LOG.info("Move %s: %s", token.operation_id, method)
            result = work()
            record.outcomes[method] = msgspec.to_builtins(result)
            self._write(path, record)
            return result

    def each_time(self, token: OperationToken, method: str, work: Callable[[], T]) -> T:
        """Does ``work`` at every order, one at a time for a move. ``work`` itself must find what it did before.

        Raises TakenOver if the token is older than one that was seen, ClaimRefused if the work was undone already.
        """
        with lockutils.lock(f"{self._directory}-{token.operation_id}"):
            path = self._directory / f"{token.operation_id}.json"
            record = self._read(path)
            _check_epoch(token, record, method)
            if token.epoch > record.epoch:
                record.epoch = token.epoch
                self._write_epoch(path, record)
            if any(undoing in record.outcomes for undoing in UNDONE_BY.get(method, ())):
                raise self._undone(token)
            if record.torn:
                self._ask(token, method in UNDONE_BY)
            return work()

    @contextmanager
    def carrying_out(self, method: str) -> Iterator[None]:
        """Encloses the work of an order: its points for faults, and its part in the work with disks."""
        injector.reach(f"compute.{method}.before")
        with self.disk_work.during(method):
            yield
        injector.reach(f"compute.{method}.after")

    def _delete_old(self) -> None:
        """Deletes old records: every build, attach and detach makes one."""
        self._looks_at = time.monotonic() + LOOK_EVERY
        for path in self._directory.glob("*.json"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - KEPT_FOR:
                    path.unlink()

    def refuse_after(self, token: OperationToken, method: str) -> None:
        """Raises ClaimRefused if ``method`` was carried out for this move, so that this order comes too late."""
        path = self._directory / f"{token.operation_id}.json"
        record = self._read(path)
        if method in record.outcomes:
            raise self._undone(token)
        if record.torn:
            self._ask(token, True)

    def _read(self, path: Path) -> _Record:
        try:
            record = durable.read(path, _DECODER.decode) or _Record()
        except durable.Torn:
            # As long as this record exists, late orders are found by asking.
            record = _Record(torn=True)
            self._write(path, record)
            return record
        record.outcomes = {_FORMER_NAMES.get(method, method): each for method, each in record.outcomes.items()}
        return record

    def _undone(self, token: OperationToken) -> errors.ClaimRefused:
        return errors.ClaimRefused(f"Move {token.operation_id} has abandoned host {self.host} already.")

    def _write_epoch(self, path: Path, record: _Record) -> None:
        """Called before the work, so that older orders are refused even if this host dies meanwhile.

        In the first epoch nothing is written: there are no older orders.
        """
        if record.epoch > FIRST_EPOCH or record.outcomes or record.torn:
            self._write(path, record)

    def _write(self, path: Path, record: _Record) -> None:
        # Outcomes contain the secrets with which volumes are connected.
        durable.write(path, msgspec.json.encode(record), mode=0o600)


def _check_epoch(token: OperationToken, record: _Record, method: str) -> None:
    if token.epoch < record.epoch:
        raise errors.TakenOver(
            f"{method} was refused: another conductor has taken over move {token.operation_id} (epoch {record.epoch})."
        )


@functools.cache
def _outcome_of(method: Callable[..., T]) -> type[T]:
    found: type[T] = get_type_hints(method)["return"]
    return found


def fenced(method: Callable[..., T]) -> Callable[..., T]:
    """Decorates a method of an endpoint with a ``fence``: it is carried out once for each move, under its ``token``."""
    return _fenced(method, None)


def fenced_each_time(method: Callable[..., T]) -> Callable[..., T]:
    """Decorates a method of an endpoint with a ``fence``: it is carried out at every order whose ``token`` is valid."""

    @functools.wraps(method)
    def ordered(endpoint: Any, context: Any, *, token: OperationToken, **arguments: Any) -> T:
        fence: Fence = endpoint.fence

        def work() -> T:
            with fence.carrying_out(method.__name__):
                return method(endpoint, context, token=token, **arguments)

        with injector.scope(host=fence.host, operation_id=token.operation_id, method=method.__name__):
            return fence.each_time(token, method.__name__, work)

    return ordered


def fenced_and_then(then: Callable[..., None]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """`fenced`, and calls ``then`` with the method's arguments, ``token`` too, after its outcome was recorded.

    ``then`` may delete what the method would need if it were carried out again; the method itself must not. It is called for a
    repeated order too, since the process may have died before. So it must find what it did before, and touch nothing of
    another move.
    """
    return lambda method: _fenced(method, then)


def _fenced(method: Callable[..., T], then: Callable[..., None] | None) -> Callable[..., T]:
    @functools.wraps(method)
    def ordered(endpoint: Any, context: Any, *, token: OperationToken, **arguments: Any) -> T:
        outcome = _outcome_of(method)
        fence: Fence = endpoint.fence

        def work() -> T:
            with fence.carrying_out(method.__name__):
                return method(endpoint, context, token=token, **arguments)

        with injector.scope(host=fence.host, operation_id=token.operation_id, method=method.__name__):
            result: T = fence.once(token, method.__name__, outcome, work)
            if then is not None:
                injector.reach(f"compute.{method.__name__}.recorded")
                then(endpoint, token=token, **arguments)
        return result

    return ordered
