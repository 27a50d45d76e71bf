"""HTTP without a socket: a `requests` transport that calls a WSGI application of this process in the caller's thread.

Callers see the same as with a server and a socket: the checks of `strict`, 500 if the application fails, a broken connection if
a body breaks off, bodies in pieces in both directions, a refused connection after `stop`.

**Timeouts.** Nothing can interrupt an application that runs in the caller's thread. Instead it gets the caller's deadline with
the request. Code that may wait for long (locks and databases have bounds of their own) waits only until then, and raises
`DeadlineOver`, which the caller sees as `requests.ReadTimeout`.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from oslo_context import context as oslo_context
from requests.adapters import BaseAdapter
from requests.exceptions import ChunkedEncodingError
from requests.structures import CaseInsensitiveDict

from causeway.http.strict import WsgiApp, strict

LOG = logging.getLogger(__name__)

# In a request's environ: until when (by `time.monotonic`) the caller waits; missing if it waits forever, or that is unknown.
DEADLINE = "causeway.deadline"
# Seconds that `stop` waits for calls that are under way.
STOP_PATIENCE = 5.0
_QUOTED_SLASH = re.compile("(%2F)", re.IGNORECASE)

Timeout = float | tuple[float | None, float | None] | None


class DeadlineOver(Exception):
    """The deadline is over. ``rest`` is what the application still has to do, without an answer to anybody."""

    def __init__(self, rest: Callable[[], object]) -> None:
        super().__init__("the caller does not wait any longer")
        self.rest = rest


class DirectTransport(BaseAdapter):
    """Mount it on a `requests.Session` for the URL prefix that the application answers. ``stop`` ends it, not ``close``."""

    def __init__(self, application: WsgiApp) -> None:
        super().__init__()
        self._application = strict(application)
        self._changed = threading.Condition()
        self._under_way = 0
        self._stopped = False

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002
        timeout: Timeout = None,
        verify: bool | str = True,  # noqa: ARG002
        cert: bytes | str | tuple[bytes | str, bytes | str] | None = None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        with self._changed:
            if self._stopped:
                raise requests.ConnectionError(f"{request.url}: connection refused, it was stopped", request=request)
            self._under_way += 1
        before = oslo_context.get_current()
        try:
            return self._call(request, timeout[1] if isinstance(timeout, tuple) else timeout)
        finally:
            # The application has made a context of its own in this thread.
            if before is not None:
                before.update_store()
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Refuses calls from now on, and waits for those that are under way."""
        with self._changed:
            self._stopped = True
            if not self._changed.wait_for(lambda: not self._under_way, STOP_PATIENCE):
                LOG.warning("%d calls inside this process have not ended; they are not waited for", self._under_way)

    def close(self) -> None:
        """Does nothing: sessions on which it is mounted may end at any time."""

    def _call(self, request: requests.PreparedRequest, seconds: float | None) -> requests.Response:
        sent = _RequestBody(request.body)
        environ = _environ(request, sent)
        if seconds is not None:
            environ[DEADLINE] = time.monotonic() + seconds
        try:
            response = self._answer(request, environ)
        except DeadlineOver as late:
            threading.Thread(target=late.rest, name="nobody-waits", daemon=True).start()
            raise requests.ReadTimeout(f"{request.url}: no answer within {seconds} seconds", request=request) from late
        finally:
            sent.end(environ.get("CONTENT_LENGTH"))
        if sent.failure is not None:
            response.close()
            raise sent.failure
        return response

    def _answer(self, request: requests.PreparedRequest, environ: dict[str, Any]) -> requests.Response:
        response = requests.Response()
        response.encoding, response.url, response.request = "utf-8", request.url or "", request
        written: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Callable[..., Any]:
            code, _space, reason = status.partition(" ")
            response.status_code, response.reason = int(code), reason
            response.headers = CaseInsensitiveDict(headers)
            return written.append

        result: Iterable[bytes] = ()
        try:
            result = self._application(environ, start_response)
            if isinstance(result, list | tuple):
                response.raw = io.BytesIO(b"".join((*written, *result)))
            else:
                pieces = iter(result)
                # Headers go out with the first piece: a failure before it is still answered with 500.
                first = next(pieces, b"")
                response.raw = _ResponseBody(response, chain(written, (first,), pieces), result)
            if response.status_code is None:
                raise RuntimeError("the application did not begin an answer")
        except DeadlineOver:
            raise
        except Exception:
            LOG.exception("%s %s failed", request.method, request.url)
            _close(result)
            start_response("500 Internal Server Error", [("Content-Type", "text/plain"), ("Content-Length", "0")])
            response.raw = io.BytesIO()
        return response


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


class _RequestBody:
    """A request's body. ``length``: None if unknown. ``failure``: what its sender raised, which the caller gets."""

    def __init__(self, body: Any) -> None:
        self.failure: Exception | None = None
        self._ended = False
        self._taken = 0
        self._parts: Iterator[bytes] = iter(())
        self.length: int | None = None
        self.file: io.BufferedIOBase
        if body is None or isinstance(body, bytes | str):
            data = body.encode() if isinstance(body, str) else body or b""
            self.length = len(data)
            self.file = io.BytesIO(data)
        else:
            self._parts = iter(body)
            self.file = io.BufferedReader(_Pieces(self._watched()))

    def _watched(self) -> Iterator[bytes]:
        while True:
            if self._ended:
                raise ConnectionResetError("the sender of this body does not send any more")
            part = self._next()
            if part is None:
                return
            self._taken += len(part)
            yield part

    def _next(self) -> bytes | None:
        try:
            return next(self._parts, None)
        except Exception as error:
            self.failure = error
            raise

    def end(self, announced: str | None) -> None:
        """Ends the body. A sender that has sent all that was ``announced`` is asked once more, so that it can finish."""
        self._ended = True
        if announced is not None and 0 < int(announced) <= self._taken and self.failure is None:
            with suppress(Exception):
                # `_next` keeps the sender's failure.
                self._next()


class _ResponseBody(io.BufferedReader):
    """The body of an answer that comes in pieces. It breaks off as a connection would."""

    def __init__(self, response: requests.Response, pieces: Iterable[bytes], result: Iterable[bytes]) -> None:
        super().__init__(_Pieces(self._watched(response, pieces)))
        self._result: Iterable[bytes] | None = result

    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        result, self._result = self._result, None
        if result is not None:
            _close(result)

    def _watched(self, response: requests.Response, pieces: Iterable[bytes]) -> Iterator[bytes]:
        announced = int(response.headers.get("Content-Length") or 0)
        received = 0
        try:
            for piece in pieces:
                received += len(piece)
                yield piece
        except Exception as error:
            LOG.info("the answer to %s broke off after %d bytes: %s", response.url, received, error)
            raise ChunkedEncodingError(f"the connection broke after {received} bytes: {error}") from error
        finally:
            self._end()
        if received < announced and response.request.method != "HEAD":
            raise ChunkedEncodingError(f"the connection ended after {received} of {announced} bytes")


def _close(result: Iterable[bytes]) -> None:
    close = getattr(result, "close", None)
    if close is not None:
        close()


def _environ(request: requests.PreparedRequest, sent: _RequestBody) -> dict[str, Any]:
    url = urlsplit(request.url or "")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        # A quoted slash stays quoted, as with our servers.
        "PATH_INFO": "".join(
            part if part.upper() == "%2F" else unquote(part, "latin-1") for part in _QUOTED_SLASH.split(url.path)
        )
        or "/",
        "QUERY_STRING": url.query,
        "SERVER_NAME": url.hostname,
        "SERVER_PORT": str(url.port or 80),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": url.netloc,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": sent.file,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        text = value.decode() if isinstance(value, bytes) else value
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + key] = text
    if sent.length is not None:
        environ["CONTENT_LENGTH"] = str(sent.length)
    elif "CONTENT_LENGTH" not in environ:
        environ["HTTP_TRANSFER_ENCODING"] = "chunked"
    return environ


__all__ = ["DEADLINE", "DeadlineOver", "DirectTransport"]
