"""HTTP without a socket: a `requests` transport that calls a WSGI application in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

WsgiApplication = Callable[..., Any]


class WsgiTransport(BaseAdapter):
    """Mount it on a `requests.Session` for the URL prefix that the application shall answer.

    ``timeout`` is not kept: a call in the same process can't be cut off. What it may wait for (the database's lock)
    has a bound of its own.
    """

    def __init__(self, application: WsgiApplication) -> None:
        super().__init__()
        self._application = application

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002
        timeout: float | tuple[float, float] | tuple[float, None] | None = None,  # noqa: ARG002
        verify: bool | str = True,  # noqa: ARG002
        cert: bytes | str | tuple[bytes | str, bytes | str] | None = None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        body = request.body or b""
        environ = _environ(request, body.encode() if isinstance(body, str) else body)
        response = requests.Response()
        written: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Callable[..., Any]:
            response.status_code, response.reason = int(status.split(" ", 1)[0]), status.split(" ", 1)[1]
            response.headers = CaseInsensitiveDict(headers)
            return written.append

        result = self._application(environ, start_response)
        try:
            written.extend(result)
        finally:
            if hasattr(result, "close"):
                result.close()
        response._content = b"".join(written)
        response.encoding = "utf-8"
        response.url = request.url or ""
        response.request = request
        return response

    def close(self) -> None:
        pass


def _environ(request: requests.PreparedRequest, body: bytes) -> dict[str, Any]:
    url = urlsplit(request.url or "")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(url.path, "latin-1") or "/",
        "QUERY_STRING": url.query,
        "SERVER_NAME": url.hostname,
        "SERVER_PORT": str(url.port or 80),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = value
        elif key != "CONTENT_LENGTH":
            environ["HTTP_" + key] = value.decode() if isinstance(value, bytes) else value
    return environ
