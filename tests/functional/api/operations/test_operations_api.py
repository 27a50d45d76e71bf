"""``/os-causeway/operations``: pages, filters, who may ask, and requests that wait.

`servers/failures/test_failed_operations` has those of a whole cloud.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from causeway.api.long_polls import LongPolls
from causeway.model.instance import Instance
from causeway.model.operations import Operation
from causeway.model.progress import OperationProgress
from causeway.model.sagas import SagaState, StepPhase, StepRecord, StepState
from causeway.store.api import journal
from causeway.store.api.ordered_operations import PROGRESS
from causeway.store.database import utcnow
from causeway.store.upsert import upsert_of
from tests.functional.servers.patience import until

START = datetime(2026, 8, 1)
SECRET = "the secret of a transfer"


@pytest.fixture
def server(cloud: Any) -> Instance:
    found: Instance = cloud.server()
    return found


@pytest.fixture
def written(cloud: Any, server: Instance) -> list[Operation]:
    """Five in the journal, oldest first: two of the server, one of which has ended; all with a step that moves bytes."""
    others = [str(uuid.uuid4()) for _ in range(3)]
    states = [SagaState.DONE, SagaState.RUNNING, SagaState.RUNNING, SagaState.STUCK, SagaState.REQUESTED]
    made = []
    for number, state in enumerate(states):
        operation_id = str(uuid.uuid4())
        move = Operation(
            id=operation_id,
            migration_uuid=operation_id if number < 3 else str(uuid.uuid4()),
            instance_uuid=server.uuid if number < 2 else others[number - 2],
            recipe="create_image" if number < 3 else "resize",
            state=state,
            owner=f"conductor{number}/life",
            data={"token": SECRET},
            error={"code": "host_down", "message": "It failed.", "details": "host9 is down."} if number == 3 else None,
            # Two of them in the same moment.
            started_at=START + timedelta(seconds=min(number, 3)),
            lease_until=START + timedelta(minutes=1),
            ended_at=START if state is SagaState.DONE else None,
        )
        with cloud.services.api.write() as connection:
            journal.insert_in(connection, move)
        begin(cloud, move, host=f"host{number}")
        made.append(move)
    return made


def begin(cloud: Any, move: Operation, *, host: str, sequence: int = 1, attempt: int = 1) -> None:
    """Writes a step, and that 25 of 100 bytes were reported of it."""
    step = StepRecord(
        "UploadDisk", StepPhase.DO, sequence, attempt=attempt, host=host, started_at=START, tried_at=START
    )
    move.steps = [each for each in move.steps or [] if each.sequence != sequence] + [step]
    steps = msgspec.to_builtins(move.steps)
    change(cloud, move, steps=steps, step=step.step, hosts=f"|{host}|", at_hand=f"{sequence}.{attempt}.0")
    report(cloud, move, f"{sequence}.{attempt}.0", 25)


def report(cloud: Any, move: Operation, at_hand: str, done: int) -> None:
    row = {"move_id": move.id, "at_hand": at_hand, "bytes_done": done, "bytes_total": 100}
    with cloud.services.api.write() as connection:
        connection.execute(upsert_of(connection.dialect.name, PROGRESS), row)


def change(cloud: Any, move: Operation, **values: Any) -> None:
    with cloud.services.api.write() as connection:
        connection.execute(journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == move.id).values(**values))


def ids(answer: Any) -> list[str]:
    assert answer.status == 200, answer.text
    return [each["id"] for each in answer.json["operations"]]


def newest_first(*moves: Operation) -> list[str]:
    return [each.id for each in sorted(moves, key=lambda each: (each.started_at or START, each.id), reverse=True)]


def test_all_that_have_not_ended_newest_first(admin: Any, written: list[Operation]) -> None:
    assert ids(admin.get("/os-causeway/operations")) == newest_first(*written[1:])
    assert ids(admin.get("/os-causeway/operations?all=1")) == newest_first(*written)


def test_those_of_a_server_are_shown_with_their_steps(admin: Any, server: Instance, written: list[Operation]) -> None:
    answer = admin.get(f"/os-causeway/servers/{server.uuid}/operations")
    (shown,) = msgspec.convert(answer.json["operations"], list[OperationProgress])
    assert (shown.id, shown.recipe, shown.state) == (written[1].id, "create_image", SagaState.RUNNING)
    assert (shown.step, shown.bytes_done, shown.bytes_total, shown.percent) == ("UploadDisk", 25, 100, 25)
    # Three times as long as the first quarter took.
    elapsed = (utcnow() - START).total_seconds()
    assert shown.seconds_left == pytest.approx(3 * elapsed, abs=60)
    assert (shown.migration_uuid, shown.is_cancellable, shown.waits_for) == (None, True, None)
    (step,) = shown.steps
    assert (step.step, step.state, step.attempt, step.host) == ("UploadDisk", StepState.STARTED, 1, "host1")
    assert ids(admin.get(f"/os-causeway/servers/{server.uuid}/operations?all=1")) == [written[1].id, written[0].id]
    assert ids(admin.get(f"/os-causeway/operations?all=1&server={server.uuid}")) == [written[1].id, written[0].id]
    assert ids(admin.get(f"/os-causeway/operations?server={server.uuid}")) == [written[1].id]
    assert admin.get(f"/os-causeway/servers/{uuid.uuid4()}/operations").status == 404
    assert admin.get("/os-causeway/servers/nobody/operations").status == 404


def test_an_operation_shows_what_it_waits_for(admin: Any, written: list[Operation]) -> None:
    shown = msgspec.convert(admin.get(f"/os-causeway/operations/{written[3].id}").json["operation"], OperationProgress)
    assert shown.waits_for is not None
    assert (shown.waits_for.host, shown.waits_for.reason) == ("host3", "It failed. host9 is down.")
    assert shown.waits_for.until == START + timedelta(minutes=1)
    assert shown.migration_uuid == written[3].migration_uuid


@pytest.mark.usefixtures("written")
def test_nothing_shows_what_an_operation_remembers(admin: Any) -> None:
    text = admin.get("/os-causeway/operations?all=1").text
    assert "UploadDisk" in text and SECRET not in text and "traceback" not in text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("recipe=create_image", [2, 1]),
        ("recipe=create_image&recipe=resize", [4, 3, 2, 1]),
        ("state=stuck", [3]),
        ("state=done", [0]),
        ("host=host2", [2]),
        ("owner=conductor2", [2]),
        ("owner=conductor2/life", [2]),
        ("owner=conductor", []),
        ("owner=conductor%25", []),
        ("recipe=nothing", []),
    ],
)
def test_filters_select_operations(admin: Any, written: list[Operation], query: str, expected: list[int]) -> None:
    assert ids(admin.get(f"/os-causeway/operations?{query}")) == newest_first(*(written[number] for number in expected))


def test_operations_are_listed_in_pages(admin: Any, written: list[Operation]) -> None:
    seen, path, pages = [], "/os-causeway/operations?all=1&limit=2", 0
    while path:
        answer = admin.get(path)
        seen += ids(answer)
        pages += 1
        links = answer.json.get("operations_links")
        path = "/os-causeway/operations?" + links[0]["href"].partition("?")[2] if links else ""
    assert (seen, pages) == (newest_first(*written), 3)


def test_operations_of_a_server_are_listed_in_pages(admin: Any, server: Instance, written: list[Operation]) -> None:
    path = f"/os-causeway/servers/{server.uuid}/operations"
    first = admin.get(f"{path}?all=1&limit=1")
    assert ids(first) == [written[1].id]
    assert f"{path}?all=1&limit=1&marker={written[1].id}" in first.json["operations_links"][0]["href"]
    assert ids(admin.get(f"{path}?all=1&limit=1&marker={written[1].id}")) == [written[0].id]


@pytest.mark.parametrize(
    "query",
    [
        "marker=11111111-2222-3333-4444-555555555555",
        "marker=x",
        "limit=-1",
        "state=odd",
        "all=2",
        "colour=red",
        "owner=a&owner=b",
    ],
)
def test_bad_questions_are_refused(admin: Any, query: str) -> None:
    assert admin.get(f"/os-causeway/operations?{query}").status == 400


def test_members_may_do_nothing_with_operations(api: Any, server: Instance, written: list[Operation]) -> None:
    assert api.get("/os-causeway/operations").status == 403
    for method, path in (
        ("GET", f"/os-causeway/servers/{server.uuid}/operations"),
        ("GET", f"/os-causeway/operations/{written[1].id}"),
        ("DELETE", f"/os-causeway/operations/{written[1].id}"),
    ):
        answer = api.call(method, path)
        assert answer.status == 403 and "causeway:" in answer.message
        # Others do not even learn that there is such a server.
        assert api.by("other:elsewhere").call(method, path).status == 404
    assert not written[1].cancel_requested


def test_what_is_not_there(admin: Any) -> None:
    for operation_id in (str(uuid.uuid4()), "nothing"):
        assert admin.get(f"/os-causeway/operations/{operation_id}").status == 404
        assert admin.delete(f"/os-causeway/operations/{operation_id}").status == 404


def test_a_cancel_that_is_in_time_is_accepted_and_notified(admin: Any, cloud: Any, written: list[Operation]) -> None:
    # It waits in nobody's hands.
    change(cloud, written[1], owner=None)
    assert admin.delete(f"/os-causeway/operations/{written[1].id}").status == 202
    assert journal.get(cloud.services.api, written[1].id).cancel_requested
    assert not journal.get(cloud.services.api, written[2].id).cancel_requested
    reported = [arguments["move_id"] for method, arguments in cloud.services.conductor.calls if method == "run_move"]
    assert reported == [written[1].id]
    assert admin.get(f"/os-causeway/operations/{written[1].id}").json["operation"]["is_cancel_requested"]


@pytest.mark.parametrize(
    ("number", "values", "said"),
    [
        (0, {}, "it has ended, and is done"),
        (1, {"pivoted": True}, "it only goes forward"),
        (1, {"state": "proposed"}, "is not accepted"),
    ],
)
def test_a_cancel_that_is_too_late_is_refused_with_its_reason(
    admin: Any, cloud: Any, written: list[Operation], number: int, values: dict[str, Any], said: str
) -> None:
    if values:
        change(cloud, written[number], **values)
    answer = admin.delete(f"/os-causeway/operations/{written[number].id}")
    assert answer.status == 409 and said in answer.message
    assert not journal.get(cloud.services.api, written[number].id).cancel_requested


# --- requests that wait


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


class Pauses(threading.Event):
    """Those between two looks of requests that wait: for each, how many connections to the API's database there were in it."""

    def __init__(self, cloud: Any) -> None:
        super().__init__()
        self._pool = cloud.services.api.engine.pool
        self.held: list[int] = []
        cloud.services.long_polls._stopping = self

    def wait(self, timeout: float | None = None) -> bool:
        self.held.append(self._pool.checkedout())
        return super().wait(timeout)


@pytest.fixture
def pauses(cloud: Any) -> Pauses:
    return Pauses(cloud)


class Poll:
    """A request that waits for what is new of an operation: for 30 seconds, if nothing else is said."""

    def __init__(self, admin: Any, pool: ThreadPoolExecutor, move: Operation, *, wait: int = 30) -> None:
        seen = admin.get(f"/os-causeway/operations/{move.id}").json["operation"]["version"]
        self._future = pool.submit(self._ask, admin, f"/os-causeway/operations/{move.id}?wait={wait}&seen={seen}")
        self.seen = seen

    def _ask(self, admin: Any, path: str) -> Any:
        answer = admin.get(path)
        assert answer.status == 200, answer.text
        return answer.json["operation"]

    def answer(self) -> Any:
        """The operation, as it was answered before the wait was over."""
        return self._future.result(20)

    def waits(self, pauses: Pauses) -> bool:
        """Whether it has looked and found nothing new, and waits for the next look."""
        before = len(pauses.held)
        until(
            lambda: len(pauses.held) > before + 1 or self._future.done(), bool, "the request to look, or to be answered"
        )
        return not self._future.done()


def test_what_is_new_is_answered_at_once(admin: Any, written: list[Operation], pauses: Pauses) -> None:
    assert admin.get(f"/os-causeway/operations/{written[1].id}?wait=30&seen=older").status == 200
    # Nothing will ever be new of what has ended.
    seen = admin.get(f"/os-causeway/operations/{written[0].id}").json["operation"]["version"]
    assert admin.get(f"/os-causeway/operations/{written[0].id}?wait=30&seen={seen}").status == 200
    assert admin.get(f"/os-causeway/operations/{written[1].id}?wait=30").status == 200
    assert pauses.held == []


def test_a_wait_ends_with_its_time(
    admin: Any, pool: ThreadPoolExecutor, written: list[Operation], pauses: Pauses
) -> None:
    poll = Poll(admin, pool, written[1], wait=1)
    assert poll.answer()["version"] == poll.seen and pauses.held


@pytest.mark.parametrize("what", ["bytes", "attempt", "step", "state", "epoch", "cancel"])
def test_a_wait_ends_with_a_change(
    admin: Any, cloud: Any, pool: ThreadPoolExecutor, written: list[Operation], pauses: Pauses, what: str
) -> None:
    move = written[1]
    poll = Poll(admin, pool, move)
    assert poll.waits(pauses)
    if what == "bytes":
        report(cloud, move, "1.1.0", 50)
    elif what == "attempt":
        begin(cloud, move, host="host1", attempt=2)
    elif what == "step":
        begin(cloud, move, host="host1", sequence=2)
    else:
        changed: dict[str, dict[str, Any]] = {
            "state": {"state": "stuck"},
            "epoch": {"epoch": 2},
            "cancel": {"cancel_requested": True},
        }
        change(cloud, move, **changed[what])
    assert poll.answer()["version"] != poll.seen


def test_a_lease_that_is_renewed_is_nothing_new(admin: Any, cloud: Any, written: list[Operation]) -> None:
    path = f"/os-causeway/operations/{written[1].id}"
    seen = admin.get(path).json["operation"]["version"]
    change(cloud, written[1], lease_until=START + timedelta(hours=1))
    assert admin.get(path).json["operation"]["version"] == seen


def test_only_so_many_wait(admin: Any, cloud: Any, pool: ThreadPoolExecutor, written: list[Operation]) -> None:
    cloud.services.long_polls = LongPolls(1)
    pauses = Pauses(cloud)
    first = Poll(admin, pool, written[1])
    assert first.waits(pauses)
    second = Poll(admin, pool, written[1])
    assert second.answer()["version"] == second.seen
    assert first.waits(pauses)
    change(cloud, written[1], epoch=2)
    first.answer()
    # There is room again.
    third = Poll(admin, pool, written[1])
    assert third.waits(pauses)
    cloud.services.long_polls.stop()
    third.answer()


def test_who_waits_holds_no_connection(
    admin: Any, cloud: Any, pool: ThreadPoolExecutor, written: list[Operation], pauses: Pauses
) -> None:
    poll = Poll(admin, pool, written[1])
    assert poll.waits(pauses)
    assert set(pauses.held) == {0}
    change(cloud, written[1], epoch=2)
    poll.answer()


def test_a_server_that_ends_waits_for_nobody(pool: ThreadPoolExecutor) -> None:
    polls, looked, ending = LongPolls(2), threading.Event(), threading.Event()

    def is_over() -> bool:
        looked.set()
        return ending.is_set()

    polls.is_over = is_over
    waiting = pool.submit(polls.wait, lambda: False, 30)
    assert looked.wait(20) and not waiting.done()
    ending.set()
    waiting.result(20)
