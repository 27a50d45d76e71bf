"""One HTTP server for all that is embedded, each under its path."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from cheroot import wsgi

LOG = logging.getLogger(__name__)

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]

THREADS = 40


class WebServer:
    """Serves WSGI applications under path prefixes, from threads of this process.

    gunicorn serves the API where it has processes of its own (`causeway api`); it can't be here, because its workers are
    processes and everything embedded is in one.
    """

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._mounts: list[tuple[str, WsgiApp]] = []
        self._server = wsgi.Server((address, port), self._dispatch, numthreads=THREADS, server_name="causeway")
        self._server.shutdown_timeout = 5
        self._server.timeout = 120
        self._server.nodelay = True
        self._thread = threading.Thread(target=self._serve, name="web-server", daemon=True)
        self._server.prepare()
        self.port: int = self._server.bind_addr[1]
        self.url = f"http://{address}:{self.port}"

    def mount(self, prefix: str, app: WsgiApp) -> None:
        self._mounts.append((prefix, app))
        self._mounts.sort(key=lambda mount: len(mount[0]), reverse=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes requests that are under way."""
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join()

    def _serve(self) -> None:
        self._server.serve()

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
