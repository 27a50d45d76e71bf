"""Services end in time although their message queue is unavailable."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from oslo_config import cfg

from causeway.context import RequestContext, admin_context
from causeway.rpc import RpcClient, RpcServer, Transports
from causeway.rpc.bounded import within
from tests.functional.processes.rabbit import rabbit, why_not


class Endpoint:
    def ping(self, context: RequestContext) -> str:  # noqa: ARG002
        return "pong"


def test_what_takes_too_long_is_not_waited_for() -> None:
    opened = threading.Event()

    def wait() -> None:
        opened.wait()

    assert not within(0.01, "slow", wait)
    opened.set()
    assert within(10, "quick", lambda: None)


def test_what_goes_wrong_in_time_is_raised() -> None:
    def fail() -> None:
        raise ValueError("this")

    with pytest.raises(ValueError, match="this"):
        within(10, "fails", fail)


@pytest.mark.integration
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_service_ends_while_rabbitmq_is_unavailable(tmp_path: Path) -> None:
    """It has served and it has called, so that it has connections of each kind. oslo.messaging would try again for ever."""
    conf = cfg.ConfigOpts()
    conf([])
    transports = Transports(conf)
    with rabbit(tmp_path / "rabbit") as url:
        transport = transports.get(f"{url}/cloud")
        server = RpcServer(transport, "topic", "server", [Endpoint()])
        server.start()
        assert RpcClient(transport, "topic").call(admin_context(), "ping", result=str) == "pong"
    server.stop(timeout=3)
    transports.cleanup(timeout=3)
