"""What computes report of transfers is shown only with the step for which they were ordered, while it runs."""

from __future__ import annotations

import threading
import uuid as uuids
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from causeway import errors
from causeway.conductor.cells.transfers import LEAST_PAUSE, MOST_ROWS, Transfers
from causeway.model.operations import Operation
from causeway.model.outcomes import OperationToken
from causeway.model.sagas import SagaState, StepPhase, StepRecord, StepState
from causeway.store.api import drains, journal, operations, recording, shown_operations
from causeway.store.api.ordered_operations import PROGRESS
from causeway.store.database import Database, statements, utcnow
from tests import progress_checks

LEASE = 60.0
TOKEN = OperationToken("operation", "operation", 2, "UploadDisk")
START = utcnow()


@pytest.fixture
def database(api: Database) -> Database:
    return api


class Later:
    """Time that passes when the test lets it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self.seconds

    def later(self, pause: float, work: Callable[[], None]) -> None:
        self.waiting.append((self.seconds + pause, work))

    def wait(self) -> None:
        """Until what is to be done next is done."""
        self.seconds, work = self.waiting.pop(0)
        work()


def step_of(**values: Any) -> StepRecord:
    given: dict[str, Any] = {"step": TOKEN.step, "phase": StepPhase.DO, "sequence": 1, "epoch": 2, "started_at": START}
    return StepRecord(**given | values)


def begin(database: Database, token: OperationToken = TOKEN, **values: Any) -> Operation:
    """An operation of epoch 2 whose step runs."""
    operation = Operation(
        id=token.operation_id,
        migration_uuid=token.migration_uuid,
        instance_uuid=str(uuids.uuid4()),
        recipe="create_image",
        request_id="asked",
        **cast(dict[str, Any], {"epoch": 2, "state": SagaState.RUNNING}) | values,
    )
    with database.write() as connection:
        journal.insert_in(connection, operation)
    recording.record(database, operation, started=step_of(), lease=LEASE)
    return operation


def bytes_of(database: Database, operation_id: str = TOKEN.operation_id) -> tuple[int | None, int | None]:
    """As they are shown, in both places."""
    operation = operations.get(database, operation_id)
    shown = shown_operations.progress(database, [operation.migration_uuid], START)
    if operation.migration_uuid in shown:
        assert shown[operation.migration_uuid].bytes_done == operation.steps[-1].bytes_done
    return operation.steps[-1].bytes_done, operation.steps[-1].bytes_total


def sent(database: Database, operation: Operation) -> int:
    return drains.bytes_sent(database, {operation.instance_uuid: "asked"})[operation.instance_uuid]


def test_bytes_are_shown_with_the_step_that_runs(database: Database) -> None:
    operation = begin(database)
    assert bytes_of(database) == (None, None) and sent(database, operation) == 0
    assert Transfers(database).report(TOKEN, 25, 100) == operation.instance_uuid
    assert bytes_of(database) == (25, 100) and sent(database, operation) == 25


def test_what_it_knows_when_it_has_ended_counts(database: Database) -> None:
    operation = begin(database)
    transfers = Transfers(database)
    transfers.report(TOKEN, 25, 100)
    recording.record(
        database,
        operation,
        ended=step_of(state=StepState.DONE, ended_at=START, bytes_done=110, bytes_total=110),
        started=step_of(step="Download", sequence=2),
        lease=LEASE,
    )
    transfers.report(TOKEN, 30, 100)
    assert bytes_of(database) == (None, None) and sent(database, operation) == 110
    Transfers(database).report(replace(TOKEN, step="Download"), 7, 10)
    assert bytes_of(database) == (7, 10) and sent(database, operation) == 117


@pytest.mark.parametrize(
    "again",
    [{"attempt": 2}, {"round": 1}, {"sequence": 2, "step": "EndImage"}],
    ids=["is tried again", "is in its next round", "has ended"],
)
def test_a_step_that_began_anew_shows_nothing_of_before(database: Database, again: dict[str, Any]) -> None:
    """Nothing of what was sent before is shown of what is sent now; not even what is written down late."""
    operation, time = begin(database), Later()
    transfers = Transfers(database, now=time.now, later=time.later)
    transfers.report(TOKEN, 20, 100)
    transfers.report(TOKEN, 25, 100)
    recording.record(database, operation, started=step_of(**again), lease=LEASE)
    assert bytes_of(database) == (None, None)
    time.wait()
    assert bytes_of(database) == (None, None)


@pytest.mark.parametrize(
    "token",
    [replace(TOKEN, step=""), replace(TOKEN, step="EndImage"), replace(TOKEN, epoch=3)],
    ids=["is not shown", "is another step's", "is not begun yet"],
)
def test_a_report_of_another_step_is_not_shown(database: Database, token: OperationToken) -> None:
    begin(database)
    Transfers(database).report(token, 25, 100)
    assert bytes_of(database) == (None, None)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"epoch": 3}, errors.TakenOver),
        ({"state": SagaState.UNDOING}, errors.TakenOver),
        ({"state": SagaState.DONE}, errors.TakenOver),
        ({"cancel_requested": True}, errors.Cancelled),
    ],
    ids=["another owner's", "undone", "ended", "cancelled"],
)
def test_a_report_for_an_operation_that_changed_owner_or_ended_is_refused(
    database: Database, values: dict[str, Any], refusal: type[errors.CausewayError]
) -> None:
    begin(database, **values)
    with pytest.raises(refusal):
        Transfers(database).report(TOKEN, 25, 100)
    assert bytes_of(database) == (None, None)


def test_an_operation_that_is_not_known(database: Database) -> None:
    with pytest.raises(errors.TakenOver):
        Transfers(database).report(TOKEN, 25, 100)


def test_an_operation_that_is_cancelled_has_no_step_that_was_not_begun(database: Database) -> None:
    operation = begin(database)
    with database.write() as connection:
        connection.execute(journal.OPERATIONS.update().values(cancel_requested=True))
    ended = step_of(state=StepState.DONE, ended_at=START)
    with pytest.raises(errors.Cancelled):
        recording.record(
            database, operation, ended=ended, started=step_of(sequence=2), unless_cancelled=True, lease=LEASE
        )
    operation.state = SagaState.UNDOING
    recording.record(database, operation, ended=ended, lease=LEASE)
    assert [(each.sequence, each.state) for each in journal.steps(database, operation.id)] == [(1, StepState.DONE)]


# many of them


def written(monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]) -> tuple[int, int]:
    """Transactions that write, and other statements, while something is done."""
    begun: list[str] = []
    works = Database.write

    def write(self: Database) -> Any:
        begun.append(self.name)
        return works(self)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "write", write)
        before = statements.snapshot().total()
        work()
        return len(begun), statements.snapshot().total() - before - len(begun)


def test_many_that_report_at_once_are_written_down_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [OperationToken(f"move-{number}", f"move-{number}", 2, TOKEN.step) for number in range(200)]
    for token in tokens:
        begin(database, token)
    time = Later()
    transfers = Transfers(database, now=time.now, later=time.later)

    def report(done: int) -> None:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda token: transfers.report(token, done, 100), tokens))

    transactions, _questions = written(monkeypatch, lambda: report(25))
    assert transactions == 1 and len(time.waiting) == 1 and time.waiting[0][0] == LEAST_PAUSE
    transactions, _questions = written(monkeypatch, time.wait)
    assert transactions == 1 and not time.waiting
    assert {bytes_of(database, token.operation_id) for token in tokens} == {(25, 100)}
    # The more there were, the longer the next ones wait.
    transactions, questions = written(monkeypatch, lambda: report(50))
    assert transactions == 0 and questions <= len(tokens)
    assert time.waiting[0][0] >= time.seconds + (len(tokens) - 1) / MOST_ROWS
    time.wait()
    assert {bytes_of(database, token.operation_id) for token in tokens} == {(50, 100)}


class Turn:
    """A lock that notes who comes to it."""

    def __init__(self) -> None:
        self.come = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.come.release()
        self._lock.acquire()

    def __exit__(self, *_failure: object) -> None:
        self._lock.release()


def test_those_that_ask_while_another_one_is_answered_are_answered_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each hears of its own transfer."""
    tokens = [OperationToken(f"move-{number}", f"move-{number}", 2, TOKEN.step) for number in range(20)]
    for token in tokens:
        begin(database, token, cancel_requested=token is tokens[7])
    transfers, turn, asked = Transfers(database, later=lambda _pause, _work: None), Turn(), list[set[str]]()
    pool, ask = ThreadPoolExecutor(len(tokens)), transfers._moves._ask
    answers: list[Any] = []

    def slowly(operation_ids: set[str]) -> Any:
        asked.append(operation_ids)
        if len(asked) == 1:
            answers.extend(pool.submit(transfers.report, token, 25, 100) for token in tokens[1:])
            assert all(turn.come.acquire(timeout=30) for _ in tokens)
        return ask(operation_ids)

    monkeypatch.setattr(transfers._moves, "_ask", slowly)
    monkeypatch.setattr(transfers._moves, "_turn", turn)
    with pool:
        transfers.report(tokens[0], 25, 100)
        failures = [answer.exception() for answer in answers]
    assert [len(each) for each in asked] == [1, len(tokens) - 1]
    assert [type(failure) for failure in failures if failure is not None] == [errors.Cancelled]
    assert isinstance(failures[6], errors.Cancelled)


def test_a_database_that_does_not_answer_fails_all_who_ask(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(database)
    transfers = Transfers(database)

    def fail(_move_ids: set[str]) -> Any:
        raise errors.DatabaseFailed("It is unreachable.")

    with monkeypatch.context() as patched:
        patched.setattr(transfers._moves, "_ask", fail)
        with pytest.raises(errors.DatabaseFailed):
            transfers.report(TOKEN, 25, 100)
    transfers.report(TOKEN, 25, 100)
    assert bytes_of(database) == (25, 100)


def test_what_can_not_be_written_fails_nobody(database: Database) -> None:
    begin(database)
    time = Later()
    transfers = Transfers(database, now=time.now, later=time.later)
    with database.write() as connection:
        PROGRESS.drop(connection)
    transfers.report(TOKEN, 25, 100)
    with database.write() as connection:
        PROGRESS.create(connection)
    transfers.report(TOKEN, 30, 100)
    time.wait()
    assert bytes_of(database) == (30, 100)


def test_a_move_that_is_gone_takes_its_progress_along(database: Database) -> None:
    begin(database)
    Transfers(database).report(TOKEN, 25, 100)
    with database.write() as connection:
        connection.execute(journal.OPERATIONS.delete())
        assert connection.execute(sa.select(sa.func.count()).select_from(PROGRESS)).scalar_one() == 0


@pytest.mark.parametrize(
    "check",
    [
        progress_checks.what_is_reported_is_shown_and_summed_while_its_step_runs,
        progress_checks.moves_that_send_share_what_their_drain_may,
    ],
    ids=lambda check: check.__name__,
)
def test_reported_progress_holds_in_sqlite(database: Database, check: Callable[[Database], None]) -> None:
    check(database)
