"""Whose guest asks at 169.254.169.254 in a network of the lab."""

from __future__ import annotations

from typing import Any

import falcon.testing
import pytest

from causeway import errors
from causeway.conf import new_config
from causeway.embedded.metadata_agent import guests_of
from causeway.metadata.callers import sign

PORT = {"device_id": "server", "project_id": "project"}


class Network:
    def __init__(self, found: Any) -> None:
        self.found = found
        self.asked: list[Any] = []

    def ports_with_address(self, address: str, networks: list[str]) -> Any:
        self.asked.append((address, networks))
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def ask(found: Any, *, proxy: bool = True) -> tuple[int, dict[str, str], Network]:
    """(status, the X- headers that the service gets, the network service) for a guest that says it is another one."""
    reported: dict[str, str] = {}

    def service(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        reported.update({name: value for name, value in environ.items() if name.startswith("HTTP_X_")})
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "0")])
        return []

    conf = new_config(neutron={"service_metadata_proxy": proxy, "metadata_proxy_shared_secret": "secret"})
    network: Any = Network(found)
    client = falcon.testing.TestClient(guests_of(service, network, conf, "net"))
    claims = {"X-Instance-ID": "another", "X-Forwarded-For": "10.0.0.66", "X-Metadata-Provider": "lb"}
    answer = client.simulate_get("/latest", headers=claims, remote_addr="10.0.0.5")
    return answer.status_code, reported, network


def test_the_owner_of_the_address_in_this_network_is_answered() -> None:
    status, reported, network = ask([PORT])
    assert (status, network.asked) == (200, [("10.0.0.5", ["net"])])
    assert reported == {
        "HTTP_X_INSTANCE_ID": "server",
        "HTTP_X_TENANT_ID": "project",
        "HTTP_X_INSTANCE_ID_SIGNATURE": sign("secret", "server"),
    }


@pytest.mark.parametrize("found", [[], [PORT, PORT], [PORT | {"device_id": ""}]])
def test_an_address_of_nobody_is_not_found(found: Any) -> None:
    assert ask(found)[:2] == (404, {})


def test_the_network_service_fails() -> None:
    assert ask(errors.ServiceFailed("no answer"))[:2] == (503, {})


def test_a_service_that_finds_out_itself_gets_the_request_as_it_is() -> None:
    status, reported, network = ask([PORT], proxy=False)
    assert (status, reported, network.asked) == (200, {}, [])
