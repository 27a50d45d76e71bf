"""What a typed call, a cast and a fanout do."""

# ruff: noqa: ARG002 (endpoints take a context, used or not)
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from queue import SimpleQueue
from typing import Any

import pytest

from causeway import errors
from causeway.context import RequestContext
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, MigrationContext
from causeway.model.states import PowerState, VmState
from causeway.rpc import Outgoing, RpcClient, RpcServer, Transport, Transports, Verdict, counters, expose

TIMEOUT = 60


@dataclass
class Report:
    when: datetime
    power: PowerState
    state: VmState
    raw: bytes
    extra: dict[str, Any]
    missing: str | None = None


class Compute:
    """An endpoint as services write them."""

    def __init__(self, host: str = "host1") -> None:
        self.host = host
        self.seen: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.entered = threading.Event()
        self.release = threading.Event()

    def prep(self, context: RequestContext, *, instance: Instance, hosts: list[str] | None = None) -> MigrationContext:
        assert isinstance(instance.flavor, Flavor)
        return MigrationContext("m1", dest_host=",".join(hosts or [self.host]), source_host=instance.host)

    def echo(self, context: RequestContext, *, report: Report) -> Report:
        return report

    def whoami(self, context: RequestContext) -> list[str | None]:
        return [self.host, context.request_id, context.user_id, context.auth_token, *context.roles]

    def refuse(self, context: RequestContext, *, uuid: str) -> None:
        raise errors.ServerNotFound(uuid, details="looked on host1")

    def break_down(self, context: RequestContext) -> None:
        raise ZeroDivisionError("a bug")

    def unsendable(self, context: RequestContext) -> Any:
        return object()

    def note(self, context: RequestContext, *, text: str) -> None:
        self.seen.put((self.host, text))

    def hold(self, context: RequestContext) -> str:
        self.entered.set()
        assert self.release.wait(TIMEOUT)
        return "done"

    def hold_guest(self, context: RequestContext, *, instance_uuid: str) -> None:
        self.hold(context)


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(user_id="user", project_id="project", roles=["member"], auth_token="secret-token")


Start = Callable[..., RpcServer]


@pytest.fixture
def start(transport: Transport) -> Iterator[Start]:
    """Starts a server for an endpoint, on its host's name."""
    with ExitStack() as stack:

        def start(endpoint: object, host: str = "host1", topic: str = "compute", **options: Any) -> RpcServer:
            server = RpcServer(transport, topic, host, [endpoint], **options)
            server.start()
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def client(transport: Transport) -> RpcClient:
    return RpcClient(transport, "compute")


def instance() -> Instance:
    return Instance("i1", "project", "user", "vm", Flavor("1", "small", 1, 128, 1), host="source")


def test_arguments_and_result_arrive_as_their_types(start: Start, client: RpcClient, context: RequestContext) -> None:
    start(Compute())
    answer = client.call(context, "prep", result=MigrationContext, server="host1", instance=instance())
    assert answer == MigrationContext("m1", dest_host="host1", source_host="source")


def test_datetimes_enums_bytes_and_plain_data_cross(start: Start, client: RpcClient, context: RequestContext) -> None:
    start(Compute())
    report = Report(
        datetime(2026, 1, 2, 3, 4, 5, 6), PowerState.RUNNING, VmState.ACTIVE, b"\x00\xff", {"a": [1, None, {"b": 2.5}]}
    )
    assert client.call(context, "echo", result=Report, report=report) == report


def test_the_context_travels_with_its_token_but_does_not_show_it(
    start: Start, transport: Transport, context: RequestContext
) -> None:
    start(Compute(), topic="conductor")
    answer = RpcClient(transport, "conductor").call(context, "whoami", result=list[str | None])
    assert answer == ["host1", context.request_id, "user", "secret-token", "member"]
    assert "secret-token" not in repr(context)
    assert "secret-token" not in repr(context.get_logging_values())


def test_a_client_of_hosts_sends_no_token(start: Start, transport: Transport, context: RequestContext) -> None:
    start(Compute(), topic="conductor")
    client = RpcClient(transport, "conductor", to_hosts=True)
    assert client.call(context, "whoami", result=list[str | None])[3] is None
    assert context.auth_token == "secret-token"


def test_a_host_uses_no_token_that_comes_all_the_same(start: Start, client: RpcClient, context: RequestContext) -> None:
    start(Compute())
    answer = client.call(context, "whoami", result=list[str | None])
    assert answer == ["host1", context.request_id, "user", None, "member"]


def test_an_error_is_raised_again_as_the_same_class(start: Start, client: RpcClient, context: RequestContext) -> None:
    start(Compute())
    with pytest.raises(errors.ServerNotFound, match="Instance i7 could not be found") as raised:
        client.call(context, "refuse", result=type(None), uuid="i7")
    assert raised.value.details == "looked on host1"


def test_a_service_that_does_not_know_a_method_is_distinguished_from_one_that_fails(
    start: Start, client: RpcClient, context: RequestContext
) -> None:
    start(Compute())
    with pytest.raises(errors.NoSuchMethod):
        client.call(context, "no_such", result=str)
    with pytest.raises(errors.CausewayError) as raised:
        client.call(context, "break_down", result=str)
    assert not isinstance(raised.value, errors.NoSuchMethod)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("break_down", {}, "break_down failed unexpectedly: ZeroDivisionError"),
        ("unsendable", {}, "unsendable failed unexpectedly"),
        ("no_such", {}, "no RPC method no_such"),
        ("prep", {"instance": instance(), "newer": 1}, "arguments of the call do not fit RPC method prep.*newer"),
        ("prep", {}, "arguments of the call do not fit RPC method prep.*instance"),
        ("note", {"text": 5}, "arguments of the call do not fit RPC method note.*str"),
    ],
)
def test_whatever_goes_wrong_reaches_the_caller(
    start: Start, client: RpcClient, context: RequestContext, method: str, arguments: dict[str, Any], message: str
) -> None:
    start(Compute())
    with pytest.raises(errors.CausewayError, match=message):
        client.call(context, method, result=type(None), timeout=TIMEOUT, **arguments)


def test_an_unexpected_failure_names_the_host_to_administrators(
    start: Start, client: RpcClient, context: RequestContext
) -> None:
    start(Compute())
    with pytest.raises(errors.CausewayError) as raised:
        client.call(context, "break_down", result=type(None))
    assert "compute on host1" in raised.value.details
    assert "host1" not in raised.value.message


def test_an_answer_of_another_type_is_an_error(start: Start, client: RpcClient, context: RequestContext) -> None:
    start(Compute())
    with pytest.raises(errors.CausewayError, match="The answer to whoami has an unexpected form"):
        client.call(context, "whoami", result=Report)


def test_what_cannot_be_sent_raises_at_the_sender(client: RpcClient, context: RequestContext) -> None:
    with pytest.raises(TypeError):
        client.cast(context, "note", text=object())


def test_an_endpoint_must_name_and_type_its_arguments() -> None:
    class Untyped:
        def method(self, context, *, argument): ...  # type: ignore[no-untyped-def]

    class Positional:
        def method(self, context: RequestContext, argument: str) -> None: ...

    class Reserved:
        def method(self, context: RequestContext, *, timeout: float) -> None: ...

    for endpoint in (Untyped(), Positional(), Reserved()):
        with pytest.raises(TypeError, match="method"):
            expose(endpoint)


def test_servers_share_a_topic_and_answer_to_their_name(
    start: Start, client: RpcClient, context: RequestContext
) -> None:
    for host in ("host1", "host2"):
        start(Compute(host), host)
    anybody = {client.call(context, "whoami", result=list[str | None])[0] for _ in range(4)}
    assert anybody == {"host1", "host2"}
    named = {client.call(context, "whoami", result=list[str | None], server="host2")[0] for _ in range(3)}
    assert named == {"host2"}


def test_a_fanout_reaches_every_server_once(start: Start, client: RpcClient, context: RequestContext) -> None:
    endpoints = [Compute("host1"), Compute("host2")]
    for endpoint in endpoints:
        start(endpoint, endpoint.host)
    client.cast(context, "note", fanout=True, text="refresh")
    assert [endpoint.seen.get(timeout=TIMEOUT) for endpoint in endpoints] == [
        ("host1", "refresh"),
        ("host2", "refresh"),
    ]
    assert all(endpoint.seen.empty() for endpoint in endpoints)


def test_a_cast_waits_until_somebody_listens_again(start: Start, client: RpcClient, context: RequestContext) -> None:
    # A broker has no queue for a host that never was there.
    start(Compute()).stop()
    client.cast(context, "note", server="host1", text="early")
    endpoint = Compute()
    start(endpoint)
    assert endpoint.seen.get(timeout=TIMEOUT) == ("host1", "early")


def test_a_call_that_nobody_answers_times_out_and_is_never_delivered(
    start: Start, client: RpcClient, context: RequestContext
) -> None:
    with pytest.raises(errors.RpcTimeout, match=r"note was not answered within [\d.]+ seconds") as raised:
        client.call(context, "note", result=type(None), server="host1", timeout=0.1, text="late")
    assert "compute on host1" in raised.value.details
    endpoint = Compute()
    start(endpoint)
    client.cast(context, "note", server="host1", text="next")
    assert endpoint.seen.get(timeout=TIMEOUT) == ("host1", "next")


def test_a_long_call_ends_when_nobody_has_sent_a_heartbeat_for_so_long(
    client: RpcClient, context: RequestContext
) -> None:
    """Its message may be lost: whoever may repeat the call need not wait for as long as others."""
    with pytest.raises(errors.RpcTimeout):
        client.call(
            context, "note", result=type(None), server="nobody", monitor=True, silence=0.1, timeout=3600, text="lost"
        )


def test_a_version_cap_refuses_what_is_newer(transport: Transport) -> None:
    capped = RpcClient(transport, "compute", version="1.3", version_cap="1.2")
    assert capped.can_send("1.2")
    assert not capped.can_send("1.3")


def test_a_server_refuses_a_newer_version_and_says_what_to_do(
    start: Start, transport: Transport, context: RequestContext
) -> None:
    start(expose(Compute(), version="1.2"))
    newer = RpcClient(transport, "compute", version="1.3")
    with pytest.raises(errors.CausewayError, match=r"version 1.3, this service understands 1.2"):
        newer.call(context, "whoami", result=list[str | None])
    assert newer.call(context, "whoami", result=list[str | None], version="1.1")


def test_calls_and_casts_are_counted(start: Start, client: RpcClient, context: RequestContext) -> None:
    start(Compute())
    before = counters.snapshot()
    client.call(context, "whoami", result=list[str | None])
    client.cast(context, "note", text="a")
    client.cast(context, "note", text="b", fanout=True)
    assert counters.snapshot() - before == {
        ("call", "compute", "whoami"): 1,
        ("cast", "compute", "note"): 1,
        ("fanout", "compute", "note"): 1,
    }


def test_the_hook_can_lose_a_request_or_a_reply(
    start: Start, transports: Transports, client: RpcClient, context: RequestContext
) -> None:
    endpoint = Compute()
    start(endpoint)
    verdicts = iter([Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY, Verdict.DELIVER])
    asked: list[Outgoing] = []

    def on_send(outgoing: Outgoing) -> Verdict:
        asked.append(outgoing)
        return next(verdicts)

    transports.on_send = on_send
    for text in ("request lost", "reply lost"):
        with pytest.raises(errors.RpcTimeout):
            client.call(context, "note", result=type(None), server="host1", text=text)
    client.call(context, "note", result=type(None), server="host1", text="delivered")
    assert [endpoint.seen.get(timeout=TIMEOUT)[1] for _ in range(2)] == ["reply lost", "delivered"]
    assert asked[0] == Outgoing("call", "compute", "host1", "note", {"text": "request lost"})


def test_stopping_waits_for_the_work_in_hand(start: Start, client: RpcClient, context: RequestContext) -> None:
    endpoint = Compute()
    server = start(endpoint)
    answers: SimpleQueue[str] = SimpleQueue()
    caller = threading.Thread(target=lambda: answers.put(client.call(context, "hold", result=str, timeout=TIMEOUT)))
    caller.start()
    assert endpoint.entered.wait(TIMEOUT)
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    endpoint.release.set()
    stopper.join(TIMEOUT)
    assert answers.get(timeout=TIMEOUT) == "done"
    caller.join(TIMEOUT)


def test_a_server_names_whose_requests_run_and_keeps_none_that_have_ended(
    start: Start, client: RpcClient, context: RequestContext
) -> None:
    compute = Compute()
    server = start(compute)
    client.cast(context, "hold_guest", server="host1", instance_uuid="i1")
    assert compute.entered.wait(TIMEOUT)
    assert server.resources() == {"i1"}
    compute.release.set()
    server.stop()
    assert not server._server._resources
    assert server.resources() == set()
