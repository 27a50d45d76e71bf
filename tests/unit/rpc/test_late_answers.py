"""Calls of tasks hold no thread while their answers take long, and lose none."""

# ruff: noqa: ARG002 (endpoints take a context, used or not)
from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

import pytest
from oslo_config import cfg

from causeway import errors
from causeway.context import RequestContext
from causeway.parking import Workers
from causeway.rpc import Outgoing, RpcClient, RpcServer, Transport, Transports, Verdict, counters, expose, late_answers
from causeway.rpc import server as rpc_server
from causeway.rpc.late_answers import NAMESPACE, AwaitedAnswersEndpoint

PATIENCE = 60.0
LISTENS_AT = "super_conductor"
# Of the calls that take long. Late answers have a version of their own.
VERSION = "1.14"


class Host:
    """What takes as long as a test wants."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()

    def hold(self, context: RequestContext, *, number: int) -> int:
        self.entered.release()
        assert self.release.wait(PATIENCE)
        return number

    def fail(self, context: RequestContext) -> None:
        self.entered.release()
        assert self.release.wait(PATIENCE)
        raise errors.ServerNotFound("gone")

    def end(self, context: RequestContext) -> None:
        self.entered.release()
        assert self.release.wait(PATIENCE)
        raise SystemExit("nobody catches this")

    def quick(self, context: RequestContext) -> str:
        return "here"


class Scene:
    """A host, and a conductor whose tasks have one thread."""

    def __init__(self, transport: Transport, undo: ExitStack) -> None:
        self.transport = transport
        self.host = Host()
        self._undo = undo
        self.server = self.start_host()
        awaited = expose(AwaitedAnswersEndpoint(transport.awaited), namespace=NAMESPACE)
        self._started(RpcServer(transport, LISTENS_AT, "conductor", [awaited], threads=2))
        self.client = RpcClient(transport, "compute", version=VERSION, listens_at=LISTENS_AT)
        transport.conf.set_override("rpc_response_timeout", 5)
        self.workers = Workers(1, 100, "test")
        undo.callback(self.workers.shutdown, wait=True)
        undo.callback(self.host.release.set)

    def start_host(self) -> RpcServer:
        return self._started(RpcServer(self.transport, "compute", "host1", [expose(self.host, VERSION)], threads=64))

    def _started(self, server: RpcServer) -> RpcServer:
        server.start()
        self._undo.callback(server.stop)
        return server

    def call(self, method: str, result: type[object], *, monitor: bool = True, **arguments: Any) -> Future[object]:
        """What a task gets."""
        found: Future[object] = Future()
        context = RequestContext(user_id="user", overwrite=False)

        def work() -> None:
            try:
                found.set_result(
                    self.client.call(context, method, result=result, server="host1", monitor=monitor, **arguments)
                )
            except errors.CausewayError as failure:
                found.set_exception(failure)

        self.workers.submit(work)
        return found

    def has_begun(self) -> None:
        assert self.host.entered.acquire(timeout=PATIENCE)


@pytest.fixture
def scene(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(late_answers, "PROMPT", 0.05)
    with ExitStack() as undo:
        yield Scene(transport, undo)


@pytest.fixture
def sent(transports: Transports) -> Counter[str]:
    """method -> how often it was sent."""
    counted: Counter[str] = Counter()

    def count(message: Outgoing) -> Verdict:
        counted[message.method] += 1
        return Verdict.DELIVER

    transports.on_send = count
    return counted


def test_calls_that_take_long_hold_no_thread(scene: Scene) -> None:
    # However slow this machine is, nobody's patience ends.
    scene.transport.conf.set_override("rpc_response_timeout", PATIENCE)
    answers = [scene.call("hold", int, number=number) for number in range(20)]
    for _ in answers:
        scene.has_begun()
    assert scene.call("quick", str).result(PATIENCE) == "here"
    scene.host.release.set()
    assert [answer.result(PATIENCE) for answer in answers] == list(range(20))


def test_what_is_answered_promptly_is_answered_once(transport: Transport, sent: Counter[str]) -> None:
    with ExitStack() as undo:
        assert Scene(transport, undo).call("quick", str).result(PATIENCE) == "here"
    assert sent == {"quick": 1}


def test_an_error_comes_late_too(scene: Scene) -> None:
    answer = scene.call("fail", type(None))
    scene.has_begun()
    late = scene.call("hold", int, number=1)
    scene.has_begun()
    scene.host.release.set()
    assert late.result(PATIENCE) == 1
    with pytest.raises(errors.ServerNotFound):
        answer.result(PATIENCE)


def test_a_late_answer_that_is_lost_is_asked_for(scene: Scene, transports: Transports) -> None:
    lost = threading.Event()

    def lose(message: Outgoing) -> Verdict:
        if message.method == "late_answer":
            lost.set()
            return Verdict.LOSE_REQUEST
        return Verdict.DELIVER

    transports.on_send = lose
    scene.transport.conf.set_override("rpc_response_timeout", 1)
    answer = scene.call("hold", int, number=7)
    scene.has_begun()
    # After it was asked for once.
    threading.Timer(1.5, scene.host.release.set).start()
    assert answer.result(PATIENCE) == 7
    assert lost.is_set()


def test_a_server_that_was_started_anew_knows_of_no_answer(scene: Scene, transports: Transports) -> None:
    transports.on_send = lambda message: Verdict.LOSE_REQUEST if message.method == "late_answer" else Verdict.DELIVER
    scene.transport.conf.set_override("rpc_response_timeout", 1)
    answer = scene.call("hold", int, number=7)
    scene.has_begun()
    # Its answer is sent to nobody, and kept by nobody.
    threading.Timer(0.5, scene.host.release.set).start()
    scene.server.stop()
    scene.start_host()
    with pytest.raises(errors.RpcTimeout):
        answer.result(PATIENCE)


def test_an_answer_that_was_promised_is_not_waited_for_when_its_work_has_ended_without_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    promised, promise = threading.Event(), late_answers.LateAnswers.promise

    def note(answers: late_answers.LateAnswers, ticket: str) -> None:
        promise(answers, ticket)
        promised.set()

    monkeypatch.setattr(late_answers.LateAnswers, "promise", note)
    scene.transport.conf.set_override("rpc_response_timeout", 1)
    answer = scene.call("end", type(None))
    scene.has_begun()
    assert promised.wait(PATIENCE)
    scene.host.release.set()
    with pytest.raises(errors.RpcTimeout):
        answer.result(PATIENCE)


def test_nobody_waits_longer_than_a_long_call_may_take(scene: Scene) -> None:
    scene.transport.conf.register_opt(cfg.FloatOpt("long_rpc_timeout", default=0.3))
    answer = scene.call("hold", int, number=7)
    scene.has_begun()
    with pytest.raises(errors.RpcTimeout):
        answer.result(PATIENCE)


def test_a_server_of_an_earlier_release_answers_when_it_is_done(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "is_patient", lambda _incoming: False)
    before = counters.snapshot()
    answer = scene.call("hold", int, number=3)
    scene.has_begun()
    scene.host.release.set()
    assert answer.result(PATIENCE) == 3
    assert (counters.snapshot() - before)["fanout", LISTENS_AT, "late_answer"] == 0


def test_who_waits_gets_an_error_when_the_transports_are_closed(scene: Scene) -> None:
    answer = scene.call("hold", int, number=3)
    scene.has_begun()
    # It has learned that the answer comes late.
    assert scene.call("quick", str).result(PATIENCE) == "here"
    scene.transport.awaited.close()
    with pytest.raises(errors.RpcTimeout):
        answer.result(PATIENCE)


def test_an_answer_whose_loss_is_wanted_is_lost(scene: Scene, transports: Transports) -> None:
    transports.on_reply = lambda message: Verdict.LOSE_REPLY if message.method == "hold" else Verdict.DELIVER
    answer = scene.call("hold", int, number=3)
    scene.has_begun()
    scene.host.release.set()
    with pytest.raises(errors.RpcTimeout):
        answer.result(PATIENCE)
