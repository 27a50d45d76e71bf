"""What a storm leaves behind in a cloud of processes is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.faults.storm.gauges import Gauges

QUIET = Gauges(
    memory={"api": 400.0, "scheduler": 140.0},
    connections={"api": 40, "cell1": 20},
    in_transaction=0,
    in_use={"api": 0, "scheduler": 0},
    queues=30,
    messages={},
    without_consumers=[],
)


def test_what_is_used_now_and_then_is_somebodys() -> None:
    earlier = replace(QUIET, in_use={"api": 1, "scheduler": 0}, in_transaction=1)
    later = replace(QUIET, in_use={"api": 2, "scheduler": 1}, in_transaction=0)
    assert [str(each) for each in later.least_of(earlier).left()] == [
        "leaked: api: 1 connections of its pools are with nobody"
    ]


def test_connections_and_queues_that_are_somebodys_are_no_fault() -> None:
    assert not list(QUIET.left())


@pytest.mark.parametrize(
    "change, said",
    [
        ({"in_use": {"api": 0, "scheduler": 2}}, "scheduler: 2 connections of its pools are with nobody"),
        ({"in_transaction": 1}, "1 connections in the middle of a transaction of nobody"),
        ({"messages": {"cell1/compute.host1": 3}}, "queue cell1/compute.host1: 3 messages"),
        ({"without_consumers": ["cloud/reply_1"]}, "queue cloud/reply_1, which nobody reads"),
    ],
)
def test_what_is_nobodys_is_a_fault(change: dict[str, Any], said: str) -> None:
    assert [str(each) for each in replace(QUIET, **change).left()] == [f"leaked: {said}"]
