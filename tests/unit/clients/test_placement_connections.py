"""Placement under load: connections that break are made anew, once; a host on which all claim at once is left to the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from keystoneauth1 import token_endpoint
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from causeway import errors
from causeway.clients.placement import PlacementClient
from causeway.clients.placement import client as module


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[str] = []
        self.breaks = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        if self.server.breaks:
            self.server.breaks -= 1
            self.close_connection = True
            return
        self.send_response(200)
        body = b'{"allocations": {}}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.server.seen.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        conflict = {"code": "placement.concurrent_update", "detail": "provider generation conflict", "status": 409}
        body = json.dumps({"errors": [conflict]}).encode()
        self.send_response(409)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client(server: Server) -> PlacementClient:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return PlacementClient(Adapter(Session(auth=token_endpoint.Token(url, "admin")), endpoint_override=url))


def test_a_connection_that_was_closed_is_made_anew(server: Server, client: PlacementClient) -> None:
    assert client.get_allocations("server").is_empty
    server.breaks = 1
    assert client.get_allocations("server").is_empty
    assert len(server.seen) == 3


def test_a_broken_connection_is_made_anew_only_once(server: Server, client: PlacementClient) -> None:
    server.breaks = 5
    with pytest.raises(errors.ServiceFailed, match="did not answer"):
        client.get_allocations("server")
    assert len(server.seen) == 2


def test_a_host_on_which_others_keep_claiming_is_refused_so_that_the_next_one_is_tried(
    server: Server, client: PlacementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    with pytest.raises(errors.ClaimRefused, match="same host at the same time"):
        client.claim("server", {"provider": {"VCPU": 1}}, "project", "user", replace=False)
    assert len(server.seen) == 2
