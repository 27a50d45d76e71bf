"""The writes of an operation's owner: the intent before a step acts, and its outcome afterwards.

The end of a step and the beginning of the next are one transaction, and so are the pivot and the switch of the instance
mapping. The steps are in the operation's row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.sagas import ENDED, TRANSITIONS, SagaState, StepRecord, StepState
from causeway.store.api import journal
from causeway.store.api.journal import OPERATION, OPERATIONS
from causeway.store.api.wanted_operations import CANCELLED
from causeway.store.clock import seconds, utc_now
from causeway.store.database import Database

# From which states an operation may come to one, or stay in it.
_BEFORE = {
    state: [old.value for old, following in TRANSITIONS.items() if state in following or old is state]
    for state in SagaState
}
# Parameters of each, as many as there are for any: the text of a list of any length would be made anew each time.
_STATES_BEFORE = [f"state_before_{number}" for number in range(max(map(len, _BEFORE.values())))]
# Made once: an operation writes each of them a dozen times.
_RECORD_OPERATION = (
    OPERATIONS.update()
    .where(
        OPERATIONS.c.id == sa.bindparam("of_operation"),
        OPERATIONS.c.epoch == sa.bindparam("of_epoch"),
        sa.or_(*(OPERATIONS.c.state == sa.bindparam(name) for name in _STATES_BEFORE)),
        # A pivot that took effect must not be undone, even if its answer was lost: the caller has to look again.
        sa.or_(OPERATIONS.c.pivoted.is_(False), OPERATIONS.c.pivoted == sa.bindparam("is_pivoted")),
    )
    .values(lease_until=utc_now(seconds("for_seconds")))
)
_RECORD_UNLESS_CANCELLED = _RECORD_OPERATION.where(OPERATIONS.c.cancel_requested.is_(False))
# Nobody acts for its user any more.
_NO_REQUESTER = {"requester": sa.null(), "sealed_token": sa.null()}
_RECORD_END = _RECORD_OPERATION.values(_NO_REQUESTER)
_RECORD_END_UNLESS_CANCELLED = _RECORD_UNLESS_CANCELLED.values(_NO_REQUESTER)


def begin(
    database: Database,
    operation: Operation,
    *,
    started: StepRecord,
    lease: float,
    also: Callable[[sa.Connection], Any] | None,
) -> None:
    """Writes a new operation with its owner and its first step, together with what ``also`` writes.

    Raises TakenOver if an earlier attempt, whose answer was lost, has written it and another conductor has acquired it.
    """
    try:
        steps = _with(operation, started)
        with database.write() as connection:
            journal.insert_in(connection, operation, pause=lease, **_of_steps(steps))
            if also is not None:
                also(connection)
    except sa.exc.IntegrityError as present:
        raise errors.TakenOver(f"Operation {operation.id} was taken over by another conductor.") from present
    operation.steps = steps


def record(
    database: Database,
    operation: Operation,
    *,
    ended: StepRecord | None = None,
    started: StepRecord | None = None,
    unless_cancelled: bool = False,
    takes: bool = False,
    lease: float = 0.0,
    also: Callable[[sa.Connection], Any] | None = None,
) -> None:
    """Writes an operation with the step that ended and the one that begins, together with what ``also`` writes.

    Writes only columns that are not known to have their values. ``takes``: this makes the writer the owner of a requested
    operation (see `acquire`). ``lease``: seconds for which the owner has the operation; for an operation without an owner,
    seconds for which nobody may acquire it. Raises Cancelled if ``unless_cancelled`` and it was cancelled; TakenOver if another
    conductor took it over (its epoch is higher), or if its state in the journal does not lead to the present one.
    """
    steps = _with(operation, ended, started)
    values = journal.values_of(operation) | _of_steps(steps)
    # The operation had no owner until now, and may have been parked since it was read.
    known = {} if takes else operation.written or {}
    changes = {name: value for name, value in values.items() if name not in known or known[name] != value}
    if operation.explanation is not None:
        changes["explanation"] = operation.explanation
    try:
        with database.write() as connection:
            _update_in(connection, operation, changes, unless_cancelled=unless_cancelled, takes=takes, lease=lease)
            if also is not None:
                also(connection)
    except errors.DatabaseFailed:
        # It may have been written all the same.
        operation.written = None
        raise
    operation.written, operation.steps, operation.explanation = values, steps, None


def _update_in(
    connection: sa.Connection,
    operation: Operation,
    changes: dict[str, Any],
    *,
    unless_cancelled: bool,
    takes: bool,
    lease: float,
) -> None:
    before = [SagaState.REQUESTED.value] if takes else _BEFORE[operation.state]
    values = changes | {
        "of_operation": operation.id,
        "of_epoch": operation.epoch,
        **dict(zip(_STATES_BEFORE, itertools.chain(before, itertools.repeat(before[0])), strict=False)),
        "is_pivoted": operation.pivoted,
        "for_seconds": lease,
    }
    if takes:
        values |= {"of_epoch": operation.epoch - 1, "epoch": operation.epoch}
    if operation.state in ENDED:
        statement = _RECORD_END_UNLESS_CANCELLED if unless_cancelled else _RECORD_END
    else:
        statement = _RECORD_UNLESS_CANCELLED if unless_cancelled else _RECORD_OPERATION
    if connection.execute(statement, values).rowcount:
        return
    found = connection.execute(
        sa.select(OPERATIONS.c.cancel_requested).where(
            OPERATIONS.c.id == operation.id, OPERATIONS.c.epoch == values["of_epoch"]
        )
    ).scalar_one_or_none()
    if unless_cancelled and found:
        raise errors.Cancelled(CANCELLED)
    raise errors.TakenOver(
        f"Operation {operation.id} was taken over by another conductor, has ended, or is behind its pivot."
    )


def _with(operation: Operation, *steps: StepRecord | None) -> list[StepRecord]:
    """All steps of an operation with these."""
    known = {step.sequence: step for step in (*operation.steps, *steps) if step is not None}
    return list(known.values())


def _of_steps(steps: list[StepRecord]) -> dict[str, Any]:
    """The columns of an operation's row about its steps."""
    hosts = dict.fromkeys(step.host for step in steps if step.host)
    return {
        "steps": OPERATION.to_value("steps", steps),
        "step": steps[-1].step if steps else None,
        "hosts": f"|{'|'.join(hosts)}|" if hosts else None,
        "at_hand": _at_hand(steps[-1]) if steps else None,
        "sent": sum(step.bytes_done or 0 for step in steps if step.state is not StepState.STARTED) or None,
    }


def _at_hand(step: StepRecord) -> str | None:
    """Identifies the attempt and round under way; None if no more bytes may be reported."""
    is_sending = step.state is StepState.STARTED and step.bytes_done is None
    return f"{step.sequence}.{step.attempt}.{step.round or 0}" if is_sending else None


def is_recorded(
    database: Database, operation: Operation, *, ended: StepRecord | None = None, started: StepRecord | None = None
) -> bool:
    """Whether a `record` whose answer was lost took effect. It is one transaction, so it did as a whole or not at all."""
    try:
        found = journal.get(database, operation.id)
    except errors.NotFound:
        return False
    if (found.epoch, found.state, found.pivoted, found.owner) != (
        operation.epoch,
        operation.state,
        operation.pivoted,
        operation.owner,
    ):
        return False
    known = {step.sequence: (step.state, step.attempt) for step in journal.steps(database, operation.id)}
    if found.data != operation.data or any(
        known.get(step.sequence) != (step.state, step.attempt) for step in (ended, started) if step is not None
    ):
        return False
    operation.written, operation.steps = journal.values_of(operation), _with(operation, ended, started)
    return True
