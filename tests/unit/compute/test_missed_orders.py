"""A host that starts waits to hear what it missed; a conductor that does not know the question is not asked again."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from causeway import errors
from causeway.compute import missed_orders
from causeway.compute.host import Host
from causeway.compute.missed_orders import MissedOrdersEndpoint, catch_up


class Conductor:
    def __init__(self, *answers: errors.CausewayError | list[Any]) -> None:
        self.answers = list(answers)

    def missed_orders(self, _context: object, *, host: str) -> list[Any]:
        assert host == "host"
        answer = self.answers.pop(0)
        if isinstance(answer, errors.CausewayError):
            raise answer
        return answer


def started(conductor: Conductor) -> None:
    host = SimpleNamespace(name="host", conductor=conductor, stopping=threading.Event())
    catch_up(cast(Host, host), cast(MissedOrdersEndpoint, None))


def test_it_waits_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_orders, "PAUSE", 0.0)
    conductor = Conductor(errors.RpcTimeout("missed_orders", "conductor", 60), errors.DatabaseFailed("It is gone."), [])
    started(conductor)
    assert conductor.answers == []


def test_an_older_conductor_noted_nothing() -> None:
    conductor = Conductor(errors.CausewayError("missed_orders failed unexpectedly: NoSuchMethod."), [])
    started(conductor)
    assert conductor.answers == [[]]
