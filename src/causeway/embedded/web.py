"""One HTTP server for everything that is embedded, each part under its path."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from causeway.http.direct import DirectTransport
from causeway.http.server import make_server
from causeway.http.strict import WsgiApp

THREADS = 40


class WebServer:
    """Serves WSGI applications under path prefixes, from threads of this process.

    ``url`` is for users. With ``internal``, ``internal_url`` is a second port with its own threads, for calls between services,
    so that users' requests never delay these. Callers in this process mount ``direct`` for it, and then need no socket and none
    of its threads. gunicorn serves the API where it has its own processes (`causeway api`). It can't serve here, because its
    workers are processes and everything embedded is in one.
    """

    def __init__(self, port: int, address: str = "127.0.0.1", *, internal: bool = False) -> None:
        self._mounts: list[tuple[str, WsgiApp]] = []
        self._threads: list[threading.Thread] = []
        self._servers: list[Any] = []
        self.direct = DirectTransport(self._dispatch)
        try:
            for number in (port, 0) if internal else (port,):
                self._servers.append(make_server(address, number, self._dispatch, threads=THREADS, name="causeway"))
        except OSError:
            self.stop()
            raise
        ports = [server.bind_addr[1] for server in self._servers]
        self._threads = [
            threading.Thread(target=server.serve, name=f"web-server-{number}", daemon=True)
            for server, number in zip(self._servers, ports, strict=True)
        ]
        self.port: int = ports[0]
        self.url = f"http://{address}:{ports[0]}"
        self.internal_url = f"http://{address}:{ports[-1]}"

    def mount(self, prefix: str, app: WsgiApp) -> None:
        self._mounts.append((prefix, app))
        self._mounts.sort(key=lambda mount: len(mount[0]), reverse=True)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finishes requests that are under way. The users' first, because they need the internal ones."""
        for server in self._servers:
            server.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self.direct.stop()

    def _dispatch(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        for prefix, app in self._mounts:
            if path == prefix or path.startswith(prefix + "/"):
                environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + prefix
                environ["PATH_INFO"] = path[len(prefix) :]
                return app(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        names = ", ".join(prefix for prefix, _app in sorted(self._mounts))
        return [f"There is nothing here. What there is: {names}\n".encode()]
