"""A connection to Placement that breaks is made anew, once; who does not answer at all has failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from keystoneauth1 import token_endpoint
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from causeway import errors
from causeway.clients.placement import PlacementClient


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


def test_once_only(server: Server, client: PlacementClient) -> None:
    server.breaks = 5
    with pytest.raises(errors.ServiceFailed, match="did not answer"):
        client.get_allocations("server")
    assert len(server.seen) == 2
