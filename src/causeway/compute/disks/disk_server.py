"""Serves offered disks to the other hosts, over HTTP or HTTPS on the host's own address (``my_ip``).

- ``GET /disks/MOVE/NAME``: a disk; ``Range: bytes=N-`` for what is missing of it.
- ``DELETE /disks/MOVE``: everything was fetched, so the offer may end.
- ``GET /disks/MOVE/rounds/NUMBER/NAME/PART``: a part of a disk whose guest runs (`rounds`), as a stream.

  ``X-Accept-Codings: zstd``: pieces may come compressed.

Each with ``Authorization: Bearer SECRET``, which the fetching host got through the conductor.
"""

from __future__ import annotations

import errno
import hmac
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from causeway import durable, errors
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.rounds import Rounds
from causeway.http.secured import Tls
from causeway.http.server import make_server

LOG = logging.getLogger(__name__)

THREADS = 8
CHUNK_BYTES = 1 << 20
_PATH = re.compile(r"/disks/([^/]+)(?:/([^/]+))?")
_PART = re.compile(r"/disks/([^/]+)/rounds/([0-9]{1,9})/([^/]+)/([0-9]{1,9})")
_RANGE = re.compile(r"bytes=([0-9]{1,18})-")

StartResponse = Callable[[str, list[tuple[str, str]]], Any]


def _port(content: bytes) -> int:
    port = int(content)
    if not 1 << 10 <= port < 1 << 16:
        raise ValueError(f"{port} is no port that was chosen here")
    return port


class DiskServer:
    """The server of one host. ``port`` 0: any free one; after a restart the same one if it is still free (``port_file``).

    ``tls``: what it needs to serve over HTTPS; None: HTTP only. Offers have an HTTPS URL only if this host requires TLS: other
    hosts that require it use it anyway, and the rest may not know it.
    """

    def __init__(
        self, offers: DiskOffers, rounds: Rounds, address: str, port: int, port_file: Path, tls: Tls | None = None
    ) -> None:
        self._offers = offers
        self._rounds = rounds
        self._address = address
        self._port = port
        self._port_file = port_file
        self._tls = tls
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def start(self) -> None:
        """Listens when this returns. Raises OSError if the address or the port is not available."""
        server = self._listening(self._port) if self._port else self._listening_somewhere()
        self._server = server
        port = server.bind_addr[1]
        durable.write(self._port_file, str(port))
        shown = f"[{self._address}]" if ":" in self._address else self._address
        scheme = "https" if self._tls is not None and self._tls.required else "http"
        self.url = f"{scheme}://{shown}:{port}/disks"
        self._thread = threading.Thread(target=server.serve, name=f"disk-server-{port}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Breaks off what is being sent; the fetching host continues when this one is up again."""
        if self._server is not None:
            self._server.stop()
        if self._thread is not None:
            self._thread.join()

    def _listening(self, port: int) -> Any:
        server = make_server(self._address, port, self._answer, threads=THREADS, name="causeway-compute", tls=self._tls)
        server.shutdown_timeout = 1
        return server

    def _listening_somewhere(self) -> Any:
        port = None
        with suppress(durable.Torn):
            # Another port will do: the fetching host gets it when the order is repeated.
            port = durable.read(self._port_file, _port)
        if port is not None:
            try:
                return self._listening(port)
            except OSError:
                LOG.info("Port %s, from which disks were fetched before, is taken", port)
        while True:
            # A port that the system chooses for listening can't be bound again at once, so one is found first and closed.
            with socket.create_server((self._address, 0), family=self._family()) as free:
                port = free.getsockname()[1]
            try:
                return self._listening(port)
            except OSError as taken:
                if taken.errno != errno.EADDRINUSE:
                    raise

    def _family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self._address else socket.AF_INET

    def _answer(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path_info = environ.get("PATH_INFO", "")
        part = _PART.fullmatch(path_info)
        if part is not None:
            return self._answer_part(part, environ, start_response)
        match = _PATH.fullmatch(path_info)
        manifest = self._offers.find(match[1]) if match else None
        if match is None or manifest is None:
            return _refuse(start_response, "404 Not Found")
        given = environ.get("HTTP_AUTHORIZATION", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, f"Bearer {manifest.secret}".encode()):
            return _refuse(start_response, "401 Unauthorized")
        operation_id, name = match.groups()
        if environ["REQUEST_METHOD"] == "DELETE" and name is None:
            self._offers.end(operation_id)
            start_response("204 No Content", [])
            return []
        path = self._offers.path(operation_id, name) if name is not None else None
        if environ["REQUEST_METHOD"] != "GET" or path is None:
            return _refuse(start_response, "404 Not Found")
        return _send(path, environ.get("HTTP_RANGE"), start_response)

    def _answer_part(
        self, asked: re.Match[str], environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        operation_id, number, name, part = asked.groups()
        given = environ.get("HTTP_AUTHORIZATION", "")
        if environ["REQUEST_METHOD"] != "GET" or not self._rounds.is_opened_by(
            operation_id, given.removeprefix("Bearer ")
        ):
            return _refuse(start_response, "404 Not Found")
        try:
            accepts = [each.strip() for each in environ.get("HTTP_X_ACCEPT_CODINGS", "").split(",")]
            content = self._rounds.read_part(operation_id, int(number), name, int(part), accepts)
        except errors.DiskTransferBroken:
            return _refuse(start_response, "404 Not Found")
        # Nobody knows its length yet; the stream marks its own end.
        write = start_response("200 OK", [("Content-Type", "application/octet-stream")])
        # By `write`, which sends a piece before the next one takes its place. What an application returns must be bytes: copies.
        with closing(content):
            for piece in content:
                write(piece)
        return []


def _refuse(start_response: StartResponse, status: str) -> Iterable[bytes]:
    start_response(status, [("Content-Length", "0")])
    return []


def _send(path: Path, wanted: str | None, start_response: StartResponse) -> Iterable[bytes]:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        # The offer has just ended.
        return _refuse(start_response, "404 Not Found")
    match = _RANGE.fullmatch(wanted or "")
    first = int(match[1]) if match else 0
    if match and first >= size:
        return _refuse(start_response, "416 Range Not Satisfiable")
    headers = [("Content-Type", "application/octet-stream"), ("Content-Length", str(size - first))]
    if match:
        headers.append(("Content-Range", f"bytes {first}-{size - 1}/{size}"))
    start_response("206 Partial Content" if match else "200 OK", headers)
    return _content(path, first)


def _content(path: Path, first: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(first)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
