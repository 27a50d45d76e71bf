"""What a declaration sends, and to whom, by the version of the receiver."""

# ruff: noqa: ARG002 (endpoints take a context, used or not)
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.context import RequestContext
from causeway.rpc import Outgoing, RpcServer, Transport, Transports, Verdict, expose
from causeway.rpc.declare import Client, IfSet, Newer, NotSent, call, calls_of, cast, declared_by


def _too_old(who: str, method: str) -> errors.HostTooOld:
    return errors.HostTooOld(f"{who} can't {method}.")


class Shop(Client):
    topic, history = "shop", {"1.0": "bread", "1.1": "cake", "1.2": "large cakes"}

    @call(since="1.0")
    def bread(
        self,
        context: RequestContext,
        host: str,
        *,
        loaves: int = 1,
        sliced: IfSet[bool] = False,
        seeds: IfSet[list[str]],
    ) -> str: ...

    @call(since="1.0")
    def count(self, context: RequestContext, *, since: IfSet[int | None] = None, kindly: NotSent[bool]) -> int: ...

    @call(since="1.1", too_old=_too_old, newer=(Newer("1.2", lambda given: given["size"] > 1, too_old=_too_old),))
    def cake(self, context: RequestContext, host: str, *, size: int) -> str: ...

    @cast(since="1.0")
    def close(self, context: RequestContext) -> None: ...


class Baker:
    def bread(
        self, context: RequestContext, *, loaves: int, sliced: bool = False, seeds: list[str] | None = None
    ) -> str:
        return f"{loaves} {sliced} {seeds}"

    def count(self, context: RequestContext, *, since: int | None = None) -> int:
        return -1 if since is None else since

    def cake(self, context: RequestContext, *, size: int) -> str:
        return f"cake of {size}"


@pytest.fixture
def transport(transports: Transports) -> Iterator[Transport]:
    transport = transports.get("causeway-memory://shop")
    server = RpcServer(transport, "shop", "baker", [expose(Baker(), "1.2")])
    server.start()
    yield transport
    server.stop()


CONTEXT = RequestContext(overwrite=False)


def test_what_says_nothing_is_not_sent(transport: Transport, transports: Transports) -> None:
    sent: list[dict[str, Any]] = []

    def note(message: Outgoing) -> Verdict:
        sent.append(message.arguments)
        return Verdict.DELIVER

    transports.on_send = note
    shop = Shop(transport)
    assert shop.bread(CONTEXT, "baker", seeds=[]) == "1 False None"
    assert shop.bread(CONTEXT, "baker", loaves=0, sliced=True, seeds=["flax"]) == "0 True ['flax']"
    assert shop.count(CONTEXT, kindly=True) == -1
    assert shop.count(CONTEXT, since=0, kindly=True) == 0
    assert sent == [{"loaves": 1}, {"loaves": 0, "sliced": True, "seeds": ["flax"]}, {}, {"since": 0}]


@pytest.mark.parametrize(("level", "allowed"), [("1.0", []), ("1.1", [1]), ("1.2", [1, 2]), (None, [1, 2])])
def test_some_arguments_need_a_newer_version(transport: Transport, level: str | None, allowed: list[int]) -> None:
    shop = Shop(transport, level)
    assert shop.allows(Shop.cake) == bool(allowed)
    for size in (1, 2):
        if size in allowed:
            assert shop.cake(CONTEXT, "baker", size=size) == f"cake of {size}"
        else:
            with pytest.raises(errors.HostTooOld, match="baker can't cake"):
                shop.cake(CONTEXT, "baker", size=size)


def test_arguments_that_are_not_declared_are_not_sent(transport: Transport) -> None:
    shop: Any = Shop(transport)
    with pytest.raises(TypeError, match="takes no colour"):
        shop.cake(CONTEXT, "baker", size=1, colour="red")
    with pytest.raises(TypeError, match="lacks size"):
        shop.cake(CONTEXT, "baker")


def test_a_client_lists_its_calls() -> None:
    assert {name: each.is_cast for name, each in calls_of(Shop).items()} == {
        "bread": False,
        "count": False,
        "cake": False,
        "close": True,
    }
    assert declared_by(Shop.cake).versions == ("1.1", "1.2")
    with pytest.raises(TypeError):
        declared_by(Shop.allows)


def test_mistakes_in_a_declaration_are_found_at_once() -> None:
    with pytest.raises(TypeError, match="declared with"):

        @call(since="1.0")
        def at_a_place(self: Client, context: RequestContext, size: int) -> None: ...

    with pytest.raises(TypeError, match="itself"):

        @call(since="1.0")
        def reserved(self: Client, context: RequestContext, *, server: str) -> None: ...

    with pytest.raises(TypeError, match="a cast has no answer"):

        @cast(since="1.0")  # type: ignore[arg-type]
        def answered(self: Client, context: RequestContext) -> str: ...
