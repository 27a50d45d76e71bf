"""Any JSON may come as an answer, or as what a host reports."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway import errors
from causeway.rpc.client import RpcClient
from causeway.rpc.compute import ComputeClient
from causeway.rpc.declare import calls_of
from causeway.rpc.endpoint import to_wire
from causeway.rpc.plain import LARGEST, problem_of

CALLS = calls_of(ComputeClient)
TEXTS = st.text(st.characters(codec=None, categories=None), max_size=20)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats()
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ERRORS = st.fixed_dictionaries({}, optional={"code": VALUES, "message": VALUES, "details": VALUES})
REPLIES = VALUES | st.dictionaries(st.sampled_from(("result", "error", "later")), VALUES | ERRORS)


class Queue:
    """As much of a transport as a client needs to read a reply."""

    conf = None


def client() -> RpcClient:
    found = RpcClient.__new__(RpcClient)
    found.topic, found._transport = "compute", Queue()  # type: ignore[assignment]
    return found


@given(reply=REPLIES, method=st.sampled_from(sorted(CALLS)))
def test_a_reply_is_an_answer_of_its_type_or_an_error(reply: Any, method: str) -> None:
    wanted = CALLS[method].result
    try:
        found = client()._result_in(reply, method, "host", wanted)
    except errors.CausewayError as failure:
        # It can be recorded as the server's fault.
        (failure.message + failure.details).encode()
        assert "\0" not in failure.message + failure.details
        assert isinstance(failure.status, int)
    else:
        assert problem_of(to_wire(found), may_have_nul=wanted is str) is None


@given(wire=VALUES | ERRORS)
def test_any_json_is_read_as_an_error(wire: Any) -> None:
    assert isinstance(errors.from_wire(wire), errors.CausewayError)


def test_an_error_of_our_own_is_read_as_it_was() -> None:
    found = errors.from_wire(errors.GuestFailed("It broke.", details="host1").to_wire())
    assert (type(found), found.message, found.details) == (errors.GuestFailed, "It broke.", "host1")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [2**63]},
        [-(2**63) - 1],
        {"a": "x\0y"},
        {"x\0": 1},
        ["\ud800"],
        float("nan"),
        {"a": [float("inf")]},
        {"a": "x" * LARGEST},
        {1: b""},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_no_database_takes_is_refused(value: Any) -> None:
    assert problem_of(value) is not None


@given(VALUES)
def test_what_is_not_refused_can_be_recorded(value: Any) -> None:
    if problem_of(value) is None:
        encoded = msgspec.json.encode(value)
        assert b"\\u0000" not in encoded or problem_of(value, may_have_nul=True) is None
        assert len(encoded) <= LARGEST


def test_a_nul_may_be_shown_where_nothing_is_recorded() -> None:
    assert problem_of("console\0log", may_have_nul=True) is None


def test_nesting_without_end_is_refused() -> None:
    value: list[Any] = []
    for _depth in range(100_000):
        value = [value]
    assert problem_of(value) is not None
