"""Services that sign and check, each with keys of its own, on one message queue."""

# ruff: noqa: ARG002 (endpoints take a context, used or not)
from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from causeway import errors, metrics
from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.parking import Workers
from causeway.rpc import RpcClient, RpcServer, Transport, Transports, expose, late_answers
from causeway.rpc import server as rpc_server
from causeway.rpc.keys import CONTROL, HOSTS, make_pair
from causeway.rpc.late_answers import NAMESPACE, AwaitedAnswersEndpoint, LateAnswers
from causeway.rpc.memory import MemoryIncomingMessage

PATIENCE = 60.0
LISTENS_AT = "super_conductor"


class Host:
    """What a host was ordered is in ``done``."""

    def __init__(self) -> None:
        self.done: SimpleQueue[str] = SimpleQueue()
        self.release = threading.Event()

    def order(self, context: RequestContext, *, text: str) -> str:
        self.done.put(text)
        return str(context.user_id)

    def hold(self, context: RequestContext) -> str:
        assert self.release.wait(PATIENCE)
        return "held"


class Site:
    """Makes services, each as a process of its own would be: ``site.service("hosts", "host1")`` has that key."""

    def __init__(self, folder: Path, url: str, undo: ExitStack) -> None:
        self._folder, self._url, self._undo = folder, url, undo
        for kind, name in ((CONTROL, "conductor1"), (HOSTS, "host1"), (HOSTS, "host2")):
            (folder / "trusted" / kind).mkdir(parents=True, exist_ok=True)
            make_pair(folder / f"{kind}-{name}.key", folder / "trusted" / kind / f"{name}.pem")

    def service(self, kind: str = "", name: str = "", **options: Any) -> Transport:
        if name:
            options["private_key"] = str(self._folder / f"{kind}-{name}.key")
        transports = Transports(new_config(rpc_signatures=options, rpc_response_timeout=60))
        self._undo.callback(transports.cleanup)
        return transports.get(self._url)

    def checking(self, kind: str, name: str, *, required: bool = True) -> Transport:
        return self.service(kind, name, trusted_keys=str(self._folder / "trusted"), required=required)

    def listen(self, transport: Transport, topic: str, name: str, endpoint: object) -> None:
        server = RpcServer(transport, topic, name, [endpoint], threads=4)
        server.start()
        self._undo.callback(server.stop)


@pytest.fixture(params=["memory", pytest.param("rabbitmq", marks=pytest.mark.integration)])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    url = f"causeway-memory://{uuid.uuid4()}"
    if request.param == "rabbitmq":
        url = request.getfixturevalue("rabbit_url")
    with ExitStack() as undo:
        yield Site(tmp_path, url, undo)


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(user_id="user", auth_token="token", overwrite=False)


def checked(topic: str, outcome: str) -> float:
    return float(metrics.RPC_CHECKED.labels(topic, outcome)._value.get())


@pytest.mark.parametrize("required", [True, False])
def test_signed_orders_are_carried_out(site: Site, context: RequestContext, required: bool) -> None:
    host = Host()
    site.listen(site.checking(HOSTS, "host1", required=required), "compute", "host1", host)
    client = RpcClient(site.service(CONTROL, "conductor1"), "compute")
    before = checked("compute", "signed")
    assert client.call(context, "order", result=str, server="host1", text="call") == "user"
    assert client.call(context, "order", result=str, text="to any host") == "user"
    client.cast(context, "order", server="host1", text="cast")
    client.cast(context, "order", fanout=True, text="to all")
    assert {host.done.get(timeout=PATIENCE) for _ in range(4)} == {"call", "to any host", "cast", "to all"}
    assert checked("compute", "signed") == before + 4


def test_orders_of_others_are_refused_and_not_carried_out(
    site: Site, context: RequestContext, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host()
    site.listen(site.checking(HOSTS, "host1"), "compute", "host1", host)
    senders = {"missing": site.service(), "not_allowed": site.service(HOSTS, "host2")}
    for outcome, transport in senders.items():
        client, before = RpcClient(transport, "compute"), checked("compute", outcome)
        with pytest.raises(errors.SenderNotTrusted) as refused:
            client.call(context, "order", result=str, server="host1", text="call")
        assert refused.value.code == "sender_not_trusted" and "order" in refused.value.message
        assert "compute on host1" in refused.value.details
        with caplog.at_level(logging.WARNING):
            client.cast(context, "order", server="host1", text="cast")
            client.cast(context, "order", fanout=True, text="to all")
            # Messages of one sender arrive one after the other, but several threads work on them.
            with pytest.raises(errors.SenderNotTrusted):
                client.call(context, "order", result=str, server="host1", text="call")
        assert checked("compute", outcome) >= before + 2
        assert "'order' was refused by compute on host1" in caplog.text
    assert host.done.empty()
    # What is trusted is carried out as before.
    client = RpcClient(site.service(CONTROL, "conductor1"), "compute")
    assert client.call(context, "order", result=str, server="host1", text="call") == "user"
    assert host.done.get(timeout=PATIENCE) == "call" and host.done.empty()


def test_a_service_without_keys_takes_everything(site: Site, context: RequestContext) -> None:
    site.listen(site.service(), "compute", "host1", Host())
    for transport in (site.service(), site.service(HOSTS, "host2"), site.service(CONTROL, "conductor1")):
        assert RpcClient(transport, "compute").call(context, "order", result=str, server="host1", text="") == "user"


def test_until_signatures_are_required_unsigned_orders_are_carried_out_and_counted(
    site: Site, context: RequestContext
) -> None:
    site.listen(site.checking(HOSTS, "host1", required=False), "compute", "host1", Host())
    before = checked("compute", "unsigned")
    assert RpcClient(site.service(), "compute").call(context, "order", result=str, server="host1", text="") == "user"
    assert checked("compute", "unsigned") == before + 1
    with pytest.raises(errors.SenderNotTrusted):
        RpcClient(site.service(HOSTS, "host2"), "compute").call(context, "order", result=str, server="host1", text="")


@pytest.mark.parametrize("asks", [False, True])
def test_late_answers_are_signed_and_so_are_questions_for_them(
    site: Site, context: RequestContext, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setattr(late_answers, "PROMPT", 0.05)
    promised, promise = threading.Event(), LateAnswers.promise

    def noted(answers: LateAnswers, ticket: str) -> None:
        promise(answers, ticket)
        promised.set()

    monkeypatch.setattr(LateAnswers, "promise", noted)
    host, conductor = Host(), site.checking(CONTROL, "conductor1")
    site.listen(site.checking(HOSTS, "host1"), "compute", "host1", host)
    if asks:
        # Nobody hears the late answer.
        conductor.conf.set_override("rpc_response_timeout", 1)
    else:
        awaited = expose(AwaitedAnswersEndpoint(conductor.awaited), namespace=NAMESPACE)
        site.listen(conductor, LISTENS_AT, "conductor1", awaited)
    client, answer = RpcClient(conductor, "compute", listens_at=LISTENS_AT), Future[object]()

    def work() -> None:
        try:
            answer.set_result(client.call(context, "hold", result=str, server="host1", monitor=True, timeout=PATIENCE))
        except errors.CausewayError as failure:
            answer.set_exception(failure)

    counted = "compute" if asks else LISTENS_AT
    workers, before = Workers(1, 10, "test"), checked(counted, "signed")
    try:
        workers.submit(work)
        assert promised.wait(PATIENCE)
        host.release.set()
        assert answer.result(PATIENCE) == "held"
    finally:
        workers.shutdown(wait=True)
    # The order and at least one question for its answer; or the late answer.
    assert checked(counted, "signed") >= before + (2 if asks else 1)


def test_a_topic_for_a_late_answer_counts_only_if_it_is_signed(
    site: Site, context: RequestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or whoever refused to answer at once would be had to send to any topic."""
    made: list[Any] = []
    monkeypatch.setattr("causeway.rpc.server.PatientMessage", lambda *message: made.append(message))
    site.listen(site.checking(HOSTS, "host1"), "compute", "host1", Host())
    client = RpcClient(site.service(), "compute")
    for wanted in ({"ticket": "t", "topic": "anything"}, {}, "anything"):
        asked = _Wants(context, wanted)
        with pytest.raises(errors.SenderNotTrusted):
            client.call(asked, "order", result=str, server="host1", text="")  # type: ignore[arg-type]
    assert made == []


class _Wants:
    """A context that asks for a late answer, somehow."""

    def __init__(self, context: RequestContext, wanted: object) -> None:
        self._context, self._wanted = context, wanted

    def to_dict(self) -> dict[str, Any]:
        return self._context.to_dict() | {"late_answer": self._wanted}


@pytest.mark.parametrize("arguments", [None, [], "text", 1])
def test_messages_of_no_form_stop_no_server(site: Site, context: RequestContext, arguments: object) -> None:
    host = Host()
    site.listen(site.checking(HOSTS, "host1"), "compute", "host1", host)
    transport = site.service()
    target = RpcClient(transport, "compute")._prepare(server="host1").target
    contexts: list[dict[str, Any]] = [{}, {"signature": []}, {"late_answer": {}}]
    for context_of_message in contexts:
        reply = transport.messaging._send(
            target, context_of_message, {"method": {}, "args": arguments}, wait_for_reply=True, timeout=60
        )
        assert reply["error"]["code"] == "sender_not_trusted"
    client = RpcClient(site.service(CONTROL, "conductor1"), "compute")
    assert client.call(context, "order", result=str, server="host1", text="") == "user"


def test_answers_to_refused_messages_hold_few_threads(
    context: RequestContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RabbitMQ's driver tries for a minute to answer to a queue that is not there."""
    stuck, release, reply = threading.Semaphore(0), threading.Event(), MemoryIncomingMessage.reply
    acknowledged, acknowledge = threading.Semaphore(0), MemoryIncomingMessage.acknowledge

    def note(incoming: MemoryIncomingMessage) -> None:
        acknowledged.release()
        acknowledge(incoming)

    def hang(incoming: MemoryIncomingMessage, answer: Any = None, failure: Any = None) -> None:
        if "error" in (answer or ()):
            stuck.release()
            assert release.wait(PATIENCE)
        reply(incoming, answer, failure)

    monkeypatch.setattr(MemoryIncomingMessage, "reply", hang)
    monkeypatch.setattr(MemoryIncomingMessage, "acknowledge", note)
    monkeypatch.setattr(rpc_server, "REFUSAL_PATIENCE", 0.01)
    with ExitStack() as undo:
        site = Site(tmp_path, f"causeway-memory://{uuid.uuid4()}", undo)
        site.listen(site.checking(HOSTS, "host1"), "compute", "host1", Host())
        undo.callback(release.set)
        for _ in range(20):
            RpcClient(site.service(), "compute").cast(context, "order", server="host1", text="")
        assert stuck.acquire(timeout=PATIENCE)
        # Those that get no answer, too.
        assert all(acknowledged.acquire(timeout=PATIENCE) for _ in range(20))
        client = RpcClient(site.service(CONTROL, "conductor1"), "compute")
        assert client.call(context, "order", result=str, server="host1", text="") == "user"
