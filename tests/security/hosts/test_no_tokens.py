"""Whoever reads a cell's queue, as each of its hosts does, gets no token of a user or service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from openstack import exceptions

from causeway.faults.points import RPC_CLIENTS
from causeway.rpc import adopting, compute
from causeway.rpc.memory import MemoryDriver
from tests.functional.servers.moves_cloud import Cloud
from tests.security.journeys import JOURNEYS, at_rest, built

# On a cell's queue are these topics.
TOPICS = frozenset({"adopting", "compute", "cell_conductor", "super_conductor"})
SECRETS = frozenset({"auth_token", "service_token", "token_info", "service_catalog"})


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, bytes]]:
    """(topic, method, the whole message) of each message on the queues of cells."""
    messages: list[tuple[str, str, bytes]] = []
    send = MemoryDriver.send

    def watched(
        driver: MemoryDriver, target: Any, ctxt: dict[str, Any], message: dict[str, Any], *more: Any, **options: Any
    ) -> Any:
        if target.topic in TOPICS:
            messages.append((target.topic, message["method"], msgspec.json.encode((ctxt, message))))
        return send(driver, target, ctxt, message, *more, **options)

    monkeypatch.setattr(MemoryDriver, "send", watched)
    return messages


def secrets_in(value: Any) -> list[str]:
    """The names of all secrets in a message that are set."""
    if isinstance(value, dict):
        own = [name for name, each in value.items() if name in SECRETS and each]
        return own + [name for each in value.values() for name in secrets_in(each)]
    if isinstance(value, list):
        return [name for each in value for name in secrets_in(each)]
    return []


def test_every_client_of_hosts_removes_tokens() -> None:
    assert [client.__name__ for client in RPC_CLIENTS if client.to_hosts] == ["AdoptingClient", "ComputeClient"]
    assert [client.__name__ for client in RPC_CLIENTS if client.topic == compute.TOPIC] == ["ComputeClient"]
    assert [client.__name__ for client in RPC_CLIENTS if client.topic == adopting.TOPIC] == ["AdoptingClient"]


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.__name__)
def test_no_message_to_a_host_has_a_token(
    cloud: Cloud, sent: list[tuple[str, str, bytes]], journey: Callable[[Cloud, Any], None]
) -> None:
    server = cloud.wait(built(cloud), "ACTIVE")
    with suppress(exceptions.SDKException):
        journey(cloud, server)
    at_rest(cloud, server)
    # An administrator's order, which once gave both hosts a token that listed all projects.
    with suppress(exceptions.SDKException):
        cloud.admin.compute.migrate_server(server.id)
        at_rest(cloud, server)
    cloud.admin.compute.delete_server(server.id)
    cloud.settle()
    tokens = [connection.session.get_token().encode() for connection in (cloud.member, cloud.admin)]
    assert {method for topic, method, _message in sent if topic == compute.TOPIC} >= {"build_guest"}
    for topic, method, message in sent:
        assert not any(token in message for token in tokens), (topic, method)
        assert secrets_in(msgspec.json.decode(message)) == [], (topic, method)
