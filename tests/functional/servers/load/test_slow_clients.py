"""Clients that send their requests slowly, never, or malformed: the cloud continues, and moves continue."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from requests.adapters import HTTPAdapter

from tests.functional.servers.moves_cloud import Cloud

HANGING = 200
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"


def connect(url: str, sent: bytes) -> socket.socket:
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname, parts.port), timeout=60)
    made.sendall(sent)
    return made


@pytest.mark.embedded("others are behind servers of their own")
@pytest.mark.parametrize(
    "sent",
    [
        b"GET /compute/v2.1/servers HTTP/1.1\r\nHost: x\r\n",
        b"POST /identity/v3/auth/tokens HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
        b"PUT /image/v2/images/x/file HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n{",
    ],
)
def test_slow_clients_stop_neither_users_nor_moves(cloud: Cloud, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(HANGING):
            stack.enter_context(connect(cloud.parts.url, sent))
        server = cloud.boot()
        cloud.resized(server)
        cloud.confirmed(server)


@pytest.mark.embedded("others are behind servers of their own")
def test_services_call_each_other_on_a_port_of_their_own(cloud: Cloud) -> None:
    parts = cloud.parts
    assert parts.web.internal_url != parts.url
    for group in ("glance", "neutron", "cinder", "keystone", "service_user", "keystone_authtoken"):
        assert parts.conf[group].auth_url.startswith(parts.web.internal_url)
    for service in ("image", "network", "volumev3", "identity"):
        found = cloud.admin.session.get_endpoint(service_type=service, interface="internal")
        assert found.startswith(parts.web.internal_url), service
        assert cloud.admin.session.get_endpoint(service_type=service, interface="public").startswith(parts.url)


@pytest.mark.embedded("others are behind servers of their own")
def test_services_call_each_other_without_sockets(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = cloud.parts
    transport, called = parts.around.sessions.transport, Counter[str]()
    assert transport.get_adapter("http://elsewhere/image") is not parts.web.direct

    def send(adapter: HTTPAdapter, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        called[str(request.url)] += 1
        return sent(adapter, request, **options)

    sent = HTTPAdapter.send
    server = cloud.boot()
    monkeypatch.setattr(HTTPAdapter, "send", send)
    cloud.resized(server)
    cloud.confirmed(server)
    # keystonemiddleware's session is its own.
    tokens = f"{parts.web.internal_url}/identity/"
    assert [url for url in called if url.startswith(parts.web.internal_url) and not url.startswith(tokens)] == []
    assert called


@pytest.mark.embedded("others are behind servers of their own")
@pytest.mark.parametrize(
    "path", ["/compute/v2.1/servers", "/identity/v3/auth/tokens", "/image/v2/images", "/placement/resource_providers"]
)
@pytest.mark.parametrize(
    "rest", [b"Content-Length: -1\r\n\r\n", CHUNKED, b"Range: bytes=" + b"1" * 5000 + b"-\r\n\r\n"]
)
def test_malformed_requests_are_refused(cloud: Cloud, path: str, rest: bytes) -> None:
    """Also by whom a token is needed; what is not a range matters to nobody but those who serve ranges."""
    token = cloud.admin.session.get_token().encode()
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Auth-Token: %s\r\n" % (
        path.encode(),
        token,
    )
    with connect(cloud.parts.url, head + rest) as made:
        assert made.recv(100).startswith(b"HTTP/1.1 400")
