"""Signatures of messages: any change is refused, and nobody sends in another's name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import oslo_messaging
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.errors import Misconfigured
from causeway.rpc import keys, signatures
from causeway.rpc.keys import Sender, TrustedKeys, make_pair, read_private_key
from causeway.rpc.late_answers import ListeningContext
from causeway.rpc.senders import may_send
from causeway.rpc.signatures import Refusal, Signatures, SignedContext

NOW = 1_800_000_000.0
MAX_AGE = 600.0
WORDS = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=8), JSON, max_size=4)


@dataclass
class Ring:
    """Keys of a cloud, in a folder. ``now`` is everybody's clock."""

    folder: Path
    now: float = NOW
    trusted: Path = field(init=False)

    def __post_init__(self) -> None:
        self.trusted = self.folder / "trusted"
        for kind in (keys.CONTROL, keys.HOSTS):
            (self.trusted / kind).mkdir(parents=True, exist_ok=True)

    def make(self, kind: str, name: str, *, is_trusted: bool = True) -> Path:
        private = self.folder / f"{kind}-{name}.key"
        make_pair(private, (self.trusted / kind if is_trusted else self.folder) / f"{name}.pem")
        return private

    def of(self, private: Path | None = None, *, checks: bool = False, required: bool = True) -> Signatures:
        return Signatures(
            read_private_key(private) if private else None,
            TrustedKeys(self.trusted) if checks else None,
            required=required,
            max_age=MAX_AGE,
            now=lambda: self.now,
        )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Ring:
    """Control plane and two hosts. Tests that change it make one of their own."""
    ring = Ring(tmp_path_factory.mktemp("keys"))
    ring.make(keys.CONTROL, "conductor1")
    for host in ("host1", "host2"):
        ring.make(keys.HOSTS, host)
    return ring


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    ring = Ring(tmp_path)
    ring.make(keys.CONTROL, "conductor1")
    return ring


@dataclass
class Message:
    """What a receiver gets: a context and a message, as the drivers hand them over."""

    context: dict[str, Any]
    message: dict[str, Any]
    topic: str = "compute"
    server: str = "host1"

    def check(self, receiver: Signatures) -> None:
        receiver.check(self.topic, self.server, self.context, self.message, may_send)

    def refused(self, receiver: Signatures) -> str:
        with pytest.raises(Refusal) as found:
            self.check(receiver)
        return found.value.outcome


def sent(
    sender: Signatures,
    method: str = "power_off",
    arguments: dict[str, Any] | None = None,
    *,
    topic: str = "compute",
    server: str | None = "host1",
    namespace: str | None = None,
    late: bool = False,
) -> Message:
    target = oslo_messaging.Target(topic=topic, server=server, namespace=namespace, version="1.0")
    context: Any = RequestContext(user_id="user", auth_token="token", roles=["member"], overwrite=False)
    if late:
        context = ListeningContext(context, "ticket", "super_conductor")
    given = arguments if arguments is not None else {"instance_uuid": "i1"}
    fields = SignedContext(sender, context, target, method, given).to_dict()
    message = {"method": method, "args": given, "version": "1.0"} | ({"namespace": namespace} if namespace else {})
    # As JSON, like on the way; the context has what the driver of RabbitMQ adds.
    return Message(json.loads(json.dumps(fields)) | {"client_timeout": 60}, json.loads(json.dumps(message)), topic)


def test_what_is_signed_arrives_without_what_others_added(shared: Ring) -> None:
    message = sent(shared.of(shared.folder / "control-conductor1.key"), late=True)
    message.check(shared.of(checks=True))
    assert message.context["late_answer"] == {"ticket": "ticket", "topic": "super_conductor"}
    assert (message.context["user"], message.context["auth_token"]) == ("user", "token")
    assert not message.context.keys() & {"signature", "client_timeout"}
    unsigned = sent(shared.of(shared.folder / "control-conductor1.key"))
    unsigned.context["late_answer"] = {"ticket": "ticket", "topic": "somewhere"}
    unsigned.check(shared.of(checks=True))
    assert "late_answer" not in unsigned.context


# Parts of a message -> other values of them with which it would be carried out, if it were not for the signature.
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["compute", "cell_conductor", "conductor"]),
    "server": st.sampled_from([None, "host1", "host2"]),
    "sent": st.floats(NOW - MAX_AGE / 2, NOW + MAX_AGE / 2),
    "namespace": st.sampled_from([None, "late_answers", "other"]),
    "method": st.sampled_from(["power_off", "power_on", "late_answer"]),
    "version": st.sampled_from([None, "1.0", "1.1"]),
    "args": ARGUMENTS,
    "user": WORDS | st.none(),
    "is_admin": st.booleans(),
    "late_answer": st.none() | st.fixed_dictionaries({"ticket": WORDS, "topic": WORDS}),
}


@pytest.mark.parametrize("part", PARTS)
@given(data=st.data())
def test_another_value_of_a_part_is_refused(shared: Ring, part: str, data: st.DataObject) -> None:
    signed = {name: data.draw(values, name) for name, values in PARTS.items()}
    changed = signed | {part: data.draw(PARTS[part], "changed")}
    assume(json.dumps(signed[part], sort_keys=True) != json.dumps(changed[part], sort_keys=True))
    context = {name: signed[name] for name in ("user", "is_admin", "late_answer")}
    target = oslo_messaging.Target(**{name: signed[name] for name in ("topic", "server", "namespace", "version")})
    ring = Ring(shared.folder, signed["sent"])
    fields = ring.of(shared.folder / "control-conductor1.key").sign(context, target, signed["method"], signed["args"])

    def at_its_receiver(parts: dict[str, Any]) -> Message:
        envelope = deepcopy(fields["signature"]) | {name: parts[name] for name in ("sent", "server")}
        arrived = {name: parts[name] for name in context} | {"signature": envelope}
        message = {name: parts[name] for name in ("method", "args", "version", "namespace")}
        return Message(arrived, message, parts["topic"], parts["server"] or "host1")

    receiver = shared.of(checks=True)
    at_its_receiver(signed | {"sent": fields["signature"]["sent"]}).check(receiver)
    assert (
        at_its_receiver(changed | {"sent": fields["signature"]["sent"] + (part == "sent")}).refused(receiver) == "wrong"
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = put(value[path[0]], path[1:], new)
    return value


@given(data=st.data(), arguments=ARGUMENTS, late=st.booleans())
def test_any_change_of_anything_that_is_signed_is_refused(
    shared: Ring, data: st.DataObject, arguments: dict[str, Any], late: bool
) -> None:
    message = sent(shared.of(shared.folder / "control-conductor1.key"), arguments=arguments, late=late)
    receiver = shared.of(checks=True, required=data.draw(st.booleans()))
    deepcopy(message).check(receiver)
    del message.context["client_timeout"]
    whole = {"context": message.context, "message": message.message, "topic": message.topic}
    path = data.draw(st.sampled_from([each for each in places(whole) if len(each) >= 1 and each != ("context",)]))
    before = deepcopy(whole)
    # Without a signature it is an unsigned message, which is another matter.
    assume(path != ("context", "signature"))
    changed = put(whole, path, data.draw(JSON if path != ("message",) else st.dictionaries(WORDS, JSON)))
    # Whether a float or an integer makes a difference, too.
    assume(json.dumps(changed, sort_keys=True) != json.dumps(before, sort_keys=True))
    message = Message(changed["context"], changed["message"], changed["topic"])
    if isinstance(message.topic, str):
        message.refused(receiver)


@given(name=WORDS, value=JSON)
def test_no_field_is_added_to_a_message(shared: Ring, name: str, value: Any) -> None:
    message = sent(shared.of(shared.folder / "control-conductor1.key"))
    before = deepcopy(message)
    before.check(shared.of(checks=True))
    assume(name not in message.context)
    message.context[name] = value
    message.check(shared.of(checks=True))
    assert message == before
    message = sent(shared.of(shared.folder / "control-conductor1.key"))
    assume(name not in message.message["args"])
    message.message["args"][name] = value
    assert message.refused(shared.of(checks=True)) == "wrong"


@given(envelope=JSON)
def test_what_is_no_signature_is_refused_like_a_wrong_one(shared: Ring, envelope: Any) -> None:
    assume(envelope is not None)
    message = sent(shared.of(shared.folder / "control-conductor1.key"))
    message.context["signature"] = envelope
    assert message.refused(shared.of(checks=True, required=False)) == "wrong"
    whole = sent(shared.of(shared.folder / "control-conductor1.key"))
    for name in whole.context["signature"]:
        message = deepcopy(whole)
        del message.context["signature"][name]
        assert message.refused(shared.of(checks=True, required=False)) == "wrong"


@given(value=JSON)
def test_both_drivers_hand_over_what_was_signed(value: Any) -> None:
    text = json.dumps(value, sort_keys=True)
    assert json.dumps(json.loads(json.dumps(value)), sort_keys=True) == text
    # The driver in memory makes null of it.
    assume("Infinity" not in text)
    try:
        crossed = msgspec.json.decode(msgspec.json.encode(value))
    except OverflowError:
        # It takes no such number at all.
        return
    assert json.dumps(crossed, sort_keys=True) == text


def test_a_message_to_one_server_is_refused_by_another(shared: Ring) -> None:
    message, receiver = sent(shared.of(shared.folder / "control-conductor1.key")), shared.of(checks=True)
    other = deepcopy(message)
    other.server = "host2"
    assert other.refused(receiver) == "other_receiver"
    message.check(receiver)


@pytest.mark.parametrize("seconds", [MAX_AGE + 1, -MAX_AGE - 1])
def test_a_message_counts_for_some_time(ring: Ring, seconds: float) -> None:
    message, receiver = sent(ring.of(ring.folder / "control-conductor1.key"), server=None), ring.of(checks=True)
    ring.now = NOW + MAX_AGE - 1
    deepcopy(message).check(receiver)
    ring.now = NOW + seconds
    assert message.refused(receiver) == "too_old"


@pytest.mark.parametrize("when", [float("nan"), float("inf"), -float("inf"), 10**400, True])
def test_a_time_that_is_none_is_refused(ring: Ring, when: float) -> None:
    sender = ring.of(ring.folder / "control-conductor1.key")
    sender._now = lambda: when
    try:
        message = sent(sender, server=None)
    except OverflowError:
        return
    assert message.refused(ring.of(checks=True)) in ("too_old", "wrong")


def test_unsigned_messages_are_refused_only_where_signatures_are_required(shared: Ring) -> None:
    message = sent(shared.of(shared.folder / "control-conductor1.key"))
    del message.context["signature"]
    assert deepcopy(message).refused(shared.of(checks=True)) == "missing"
    message.check(shared.of(checks=True, required=False))
    assert message.context["client_timeout"] == 60
    message.context["signature"] = "anything"
    # Who trusts nobody in particular checks nothing.
    message.check(shared.of(shared.folder / "control-conductor1.key", required=False))


def test_keys_of_strangers_are_refused(ring: Ring) -> None:
    stranger = ring.of(ring.make(keys.CONTROL, "stranger", is_trusted=False))
    assert sent(stranger).refused(ring.of(checks=True)) == "unknown_key"
    # Nor does it help to use a known key's name.
    message = sent(stranger)
    known = sent(ring.of(ring.folder / "control-conductor1.key"))
    message.context["signature"]["key"] = known.context["signature"]["key"]
    assert message.refused(ring.of(checks=True)) == "wrong"


REPORTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "report_host": lambda host: {"report": {"host": host, "node": {"host": host}}},
    "missed_orders": lambda host: {"host": host},
    "orders_carried_out": lambda host: {"host": host, "ids": []},
    "recorded_claims": lambda host: {"host": host, "instance_uuids": []},
}
WITH_TOKEN = ("report_progress", "report_live_progress", "check_order")


@pytest.mark.parametrize("method", REPORTS)
def test_a_host_reports_only_of_itself(shared: Ring, method: str) -> None:
    receiver, host1 = shared.of(checks=True), shared.of(shared.folder / "hosts-host1.key")
    to: dict[str, Any] = {"topic": "cell_conductor", "server": None}
    sent(host1, method, REPORTS[method]("host1"), **to).check(receiver)
    assert sent(host1, method, REPORTS[method]("host2"), **to).refused(receiver) == "not_allowed"
    for broken in (
        {},
        {"host": ["host1"]},
        {"report": "host1"},
        {"report": {"host": "host1", "node": {"host": "host2"}}},
    ):
        assert sent(host1, method, broken, **to).refused(receiver) == "not_allowed"
    sent(shared.of(shared.folder / "control-conductor1.key"), method, REPORTS[method]("host2"), **to).check(receiver)


@pytest.mark.parametrize("method", WITH_TOKEN)
def test_who_has_the_token_of_an_operation_may_report_of_it(shared: Ring, method: str) -> None:
    host1 = shared.of(shared.folder / "hosts-host1.key")
    sent(host1, method, {"token": {}}, topic="cell_conductor", server=None).check(shared.of(checks=True))


def test_the_key_of_a_host_is_for_reports_and_late_answers(shared: Ring) -> None:
    receiver, host1 = shared.of(checks=True), shared.of(shared.folder / "hosts-host1.key")
    for topic, method, namespace in (
        ("compute", "power_off", None),
        # Not even to itself, or with the name of a report.
        ("compute", "missed_orders", None),
        ("compute", "late_answer_of", "late_answers"),
        ("super_conductor", "missed_orders", None),
        ("conductor", "run_move", None),
        ("scheduler", "select_destinations", None),
        ("cell_conductor", "anything", None),
        ("cell_conductor", "missed_orders", "namespace"),
    ):
        message = sent(host1, method, {"host": "host1"}, topic=topic, server=None, namespace=namespace)
        assert message.refused(receiver) == "not_allowed", (topic, method)
    late = {"ticket": "ticket", "reply": {}}
    sent(host1, "late_answer", late, topic="super_conductor", server=None, namespace="late_answers").check(receiver)


def test_only_a_key_of_the_control_plane_may_send_what_is_unknown() -> None:
    for message in ({}, {"method": None}, {"method": ["a"]}, {"method": "report_host", "args": None}):
        assert may_send(Sender("conductor1", is_host=False), "cell_conductor", message)
        assert not may_send(Sender("host1", is_host=True), "cell_conductor", message)


def test_options_make_signatures_or_none(ring: Ring) -> None:
    assert signatures.from_options(new_config()) is None
    private, trusted = str(ring.folder / "control-conductor1.key"), str(ring.trusted)
    both = signatures.from_options(new_config(rpc_signatures={"private_key": private, "trusted_keys": trusted}))
    assert both is not None and both.signs and both.trusted is not None and not both.required
    checks = signatures.from_options(new_config(rpc_signatures={"trusted_keys": trusted, "required": True}))
    assert checks is not None and not checks.signs and checks.required
    with pytest.raises(Misconfigured, match="trusted_keys"):
        signatures.from_options(new_config(rpc_signatures={"private_key": private, "required": True}))
