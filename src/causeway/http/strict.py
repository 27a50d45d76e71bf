"""A layer around every application: answers malformed heads and bodies with 400, whatever the application does with them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

LOG = logging.getLogger(__name__)

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]
_LENGTH = re.compile(r"[0-9]{1,18}")
# Only the form of a range is checked here: positions have at most 18 digits.
_TOO_LONG = re.compile(r"[0-9]{19}")


def strict(app: WsgiApp) -> WsgiApp:
    """The application, behind the checks."""

    def checked(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        problem = _malformed(environ)
        if problem is not None:
            return _refuse(problem, start_response)
        body = environ["wsgi.input"] = _Body(environ["wsgi.input"])
        refused: list[str] = []

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            if body.problem is None or not status.startswith("5"):
                return start_response(status, headers, *more)
            refused.append(body.problem)
            return lambda _data: None

        answer = app(environ, start)
        if not refused:
            return answer
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        return _refuse(refused[0], start_response)

    return checked


def _malformed(environ: dict[str, Any]) -> str | None:
    length = environ.get("CONTENT_LENGTH") or ""
    if length and not _LENGTH.fullmatch(length):
        return "The header Content-Length is not a number of bytes."
    if _TOO_LONG.search(environ.get("HTTP_RANGE") or ""):
        return "The header Range is not a range of bytes."
    return None


def _refuse(problem: str, start_response: Any) -> Iterable[bytes]:
    data = json.dumps({"badRequest": {"code": 400, "message": problem}}).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data))), ("Connection", "close")]
    start_response("400 Bad Request", headers)
    return [data]


class BrokenBody(ValueError):
    """The body of a request is malformed, ended early, or did not come in time."""


class _Body:
    """The request's body. Once it has broken it is not read any more, since nothing more would arrive."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.problem: str | None = None

    def read(self, *size: int) -> bytes:
        data: bytes = self._watched(self._stream.read, *size)
        return data

    def readline(self, *size: int) -> bytes:
        data: bytes = self._watched(self._stream.readline, *size)
        return data

    def readlines(self, *hint: int) -> list[bytes]:
        lines: list[bytes] = self._watched(self._stream.readlines, *hint)
        return lines

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def _watched(self, read: Callable[..., Any], *arguments: int) -> Any:
        if self.problem is not None:
            raise BrokenBody(self.problem)
        try:
            return read(*arguments)
        except Exception as error:
            # Each server has exceptions of its own for malformed chunks, early ends and missing bytes.
            self.problem = "The body of the request is malformed, or did not come in time."
            LOG.info("The body of a request broke: %s: %s", type(error).__name__, error)
            raise BrokenBody(self.problem) from error


__all__ = ["BrokenBody", "WsgiApp", "strict"]
