"""The progress of an operation, as the API and the command line show it.

The operation's memory (ports, attachments, secrets of transfers) is never part of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from causeway.model.operations import Operation
from causeway.model.sagas import CANCELLABLE, ENDED, SagaState, StepPhase, StepRecord, StepState


@dataclass(kw_only=True)
class StepProgress:
    """A step's do or undo with all its attempts. ``seconds``: of the last one; None while it is running.

    ``round``: of a step that transfers in rounds; the bytes are those of the round, and of all rounds when the step has ended.
    ``seconds_left``: an estimate from the rate so far.

    ``error``, ``first_error``: of the last and the first attempt that failed, with message and details.
    """

    step: str
    phase: StepPhase
    state: StepState
    attempt: int
    host: str | None
    seconds: float | None
    bytes_done: int | None
    bytes_total: int | None
    percent: int | None
    round: int | None
    seconds_left: int | None
    error: dict[str, Any] | None
    first_error: dict[str, Any] | None
    started_at: datetime | None
    tried_at: datetime | None
    ended_at: datetime | None


@dataclass(kw_only=True)
class Wait:
    """Why an operation does not continue now. ``until``: when it is tried again; None if it waits until the cause is gone.

    ``host``: of the step that failed; None if the step works on records and services.
    """

    reason: str
    until: datetime | None
    host: str | None


@dataclass(kw_only=True)
class OperationProgress:
    """An operation and its steps. ``version``: a string that changes with everything else.

    ``step``, ``bytes_done``, ``bytes_total``, ``percent``, ``round`` and ``seconds_left``: of the step that began last; None if
    the operation has ended. ``migration_uuid``: None if it has no migration. ``error``: why it failed, is stuck or waits.
    """

    id: str
    version: str
    instance_uuid: str
    migration_uuid: str | None
    recipe: str
    state: SagaState
    step: str | None
    bytes_done: int | None
    bytes_total: int | None
    percent: int | None
    round: int | None
    seconds_left: int | None
    waits_for: Wait | None
    is_past_pivot: bool
    is_cancellable: bool
    is_cancel_requested: bool
    error: dict[str, Any] | None
    owner: str | None
    request_id: str | None
    user_id: str | None
    project_id: str | None
    started_at: datetime | None
    ended_at: datetime | None
    steps: list[StepProgress] = field(default_factory=list)


def progress_of(operation: Operation, now: datetime) -> OperationProgress:
    last = None if operation.state in ENDED or not operation.steps else operation.steps[-1]
    return OperationProgress(
        id=operation.id,
        version=version_of(operation),
        instance_uuid=operation.instance_uuid,
        migration_uuid=operation.migration_uuid if operation.is_for_migration else None,
        recipe=operation.recipe,
        state=operation.state,
        step=None if last is None else last.step,
        bytes_done=None if last is None else last.bytes_done,
        bytes_total=None if last is None else last.bytes_total,
        percent=None if last is None else last.percent,
        round=None if last is None else last.round,
        seconds_left=None if last is None else last.seconds_left(now),
        waits_for=_wait_of(operation, last),
        is_past_pivot=operation.pivoted,
        is_cancellable=why_not_cancellable(operation) is None,
        is_cancel_requested=operation.cancel_requested,
        error=operation.error,
        owner=operation.owner,
        request_id=operation.request_id,
        user_id=operation.user_id,
        project_id=operation.project_id,
        started_at=operation.started_at,
        ended_at=operation.ended_at,
        steps=[_step(step, now) for step in operation.steps],
    )


def _step(step: StepRecord, now: datetime) -> StepProgress:
    return StepProgress(
        step=step.step,
        phase=step.phase,
        state=step.state,
        attempt=step.attempt,
        host=step.host,
        seconds=step.seconds,
        bytes_done=step.bytes_done,
        bytes_total=step.bytes_total,
        percent=step.percent,
        round=step.round,
        seconds_left=step.seconds_left(now),
        error=step.error,
        first_error=step.first_error,
        started_at=step.started_at,
        tried_at=step.tried_at,
        ended_at=step.ended_at,
    )


def version_of(operation: Operation) -> str:
    """A string that changes with the operation's epoch, state, steps or bytes, but not when its lease is renewed."""
    seen = (
        operation.epoch,
        operation.state,
        operation.recipe,
        operation.owner,
        operation.pivoted,
        operation.cancel_requested,
        operation.parked,
        [
            (step.sequence, step.phase, step.state, step.attempt, step.bytes_done, step.round)
            for step in operation.steps
        ],
    )
    return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:16]


def reason_of(operation: Operation) -> str:
    """Why an operation waits, is stuck, or failed, as administrators see it; empty if nothing went wrong."""
    if operation.parked is not None:
        return operation.parked.partition(" ")[2]
    return text_of(operation.error)


def text_of(error: dict[str, Any] | None) -> str:
    """An error of the journal as administrators see it."""
    return " ".join(filter(None, ((error or {}).get(part) for part in ("message", "details"))))


def _wait_of(operation: Operation, last: StepRecord | None) -> Wait | None:
    host = None if last is None else last.host
    if operation.waits_until is not None:
        return Wait(reason=reason_of(operation), until=operation.waits_until, host=host)
    if operation.state is SagaState.STUCK or (operation.parked is not None and operation.state not in ENDED):
        until = operation.lease_until if operation.parked is None else None
        return Wait(reason=reason_of(operation), until=until, host=host)
    return None


def why_not_cancellable(operation: Operation) -> str | None:
    """Why the operation can't be cancelled; None if it can be now."""
    name = f"Operation {operation.id} ({operation.recipe}) of server {operation.instance_uuid}"
    if operation.state in ENDED:
        return f"{name} can't be cancelled: it has ended, and is {operation.state}."
    if operation.pivoted:
        return f"{name} can't be cancelled any more: what it did can't be undone, and it only goes forward."
    if operation.state not in CANCELLABLE:
        return f"{name} can't be cancelled: its request is not accepted."
    return None
