"""What is no part of the libraries' interfaces, and is built upon: a release without it is named."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from cheroot import connections, makefile
from cheroot import server as cheroot_server
from gunicorn.workers import gthread


@pytest.mark.parametrize(
    ("made", "attributes"),
    [
        (gthread.ThreadWorker, {"pending_conns", "nr_conns", "poller", "worker_connections"}),
        (gthread.TConn, {"sock", "parser", "timeout", "data_ready"}),
        (connections.ConnectionManager, {"_selector", "server"}),
        (cheroot_server.HTTPConnection, {"rfile", "socket", "RequestHandlerClass"}),
        (cheroot_server.HTTPRequest, {"inheaders", "header_reader", "close_connection", "response_protocol"}),
    ],
)
def test_libraries_have_the_attributes_that_are_built_upon(made: type[Any], attributes: set[str]) -> None:
    assert attributes - set(dir(made)) <= set(made.__init__.__code__.co_names)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (gthread.ThreadWorker.accept, ["self", "listener"]),
        (gthread.ThreadWorker.enqueue_req, ["self", "conn"]),
        (gthread.ThreadWorker.on_pending_socket_readable, ["self", "conn", "client"]),
        (gthread.ThreadWorker.handle, ["self", "conn"]),
        (gthread.ThreadWorker.finish_request, ["self", "conn", "fs"]),
        (gthread.ThreadWorker.murder_pending, ["self"]),
        (gthread.TConn.__init__, ["self", "cfg", "sock", "client", "server"]),
        (gthread.TConn.close, ["self", "graceful"]),
        (vars(connections.ConnectionManager)["_from_server_socket"], ["self", "server_socket"]),
        (vars(connections.ConnectionManager)["_expire"], ["self", "threshold"]),
        (connections.ConnectionManager.put, ["self", "conn"]),
        (connections._ThreadsafeSelector.select, ["self", "timeout"]),
        (makefile.StreamReader.has_data, ["self"]),
        (cheroot_server.HeaderReader.__call__, ["self", "rfile", "hdict"]),
        (vars(cheroot_server.HeaderReader)["_allow_header"], ["self", "key_name"]),
        (cheroot_server.HTTPRequest.read_request_headers, ["self"]),
    ],
)
def test_libraries_have_the_methods_that_are_built_upon(method: Any, parameters: list[str]) -> None:
    assert list(inspect.signature(method).parameters) == parameters
