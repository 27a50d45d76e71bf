"""Fault injection: makes a service refuse, be slow, hang, or break off in the middle of a body.

Rules come from `Faults.add` and from a YAML file that is read again whenever it changes. It has a list of mappings with the
fields of `Fault`, for example

    - {service: image, method: PUT, path: "/file$", action: drop, after_bytes: 65536, times: 1}
    - {service: network, path: "/bindings", action: status, status: 503}

The first rule that matches a request applies, for at most `times` requests. When the file is deleted, requests that hang or are
delayed continue. Each request that a rule was applied to is a line of a file beside it, whose name ends with ".hits".
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import yaml

from causeway.devcloud.bodies import drain
from causeway.http.direct import DEADLINE, DeadlineOver

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = logging.getLogger(__name__)

FOREVER = 1 << 62
# Seconds between two checks of the file by a held request, since it can't wait for a change of a file.
LOOK_EVERY = 0.2
ANNOUNCED_LENGTH = 1 << 40
READ_METHODS = ("GET", "HEAD")


class ConnectionCutError(Exception):
    """Raised into the WSGI server, so that it ends the connection without finishing the response."""


Action = Literal["status", "delay", "delay_reply", "hang", "drop", "lose_reply", "corrupt"]


@dataclass
class Fault:
    """A rule: an action for some requests.

    `path` is a regular expression, searched in the path below the service's mount point. Actions:

    - status: answers with `status`, and does nothing else;
    - delay: waits `seconds`, then continues as usual;
    - hang: waits `seconds`, then cuts the connection without carrying out the request;
    - drop: cuts the connection after `after_bytes` of the response's body for GET, else of the request's body;
      with `after_bytes` 0 for a request, the request is not carried out at all;
    - delay_reply: carries out the request, waits `seconds`, then answers;
    - lose_reply: carries out the request, and cuts the connection before the answer;
    - corrupt: inverts the bytes of that body from `after_bytes` on.
    """

    action: Action
    path: str = ""
    method: str | None = None
    service: str | None = None
    status: int = 503
    seconds: float = 0.0
    after_bytes: int = 0
    times: int = FOREVER

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise ValueError(f"unknown action {self.action!r} of a fault rule")
        self._pattern = re.compile(self.path)

    def matches(self, service: str, method: str, path: str) -> bool:
        if self.times <= 0 or self.service not in (None, service):
            return False
        if self.method is not None and self.method.upper() != method:
            return False
        return self._pattern.search(path) is not None


class Faults:
    """The rules in force."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._rules: list[Fault] = []
        self._file_rules: list[Fault] = []
        self._file_version: tuple[int, int] | None = None
        self._released = threading.Event()
        self._closed = False

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._rules.append(fault)
        return fault

    def clear(self) -> None:
        """Deletes the added rules. Requests that hang or are delayed continue at once."""
        with self._lock:
            self._rules.clear()
            self._release()

    def close(self) -> None:
        """Ends held requests whose callers no longer wait, without carrying them out."""
        self._closed = True
        self.clear()

    def _release(self) -> None:
        self._released.set()
        self._released = threading.Event()

    def _hold(self, seconds: float, environ: "WSGIEnvironment", then: Callable[[], object]) -> None:
        """Holds a request until the time is over or the rules are deleted, then calls ``then``.

        If the own timeout of a caller in this process is over earlier, the caller returns, and ``then`` is still called.
        """
        released, end = self._released, time.monotonic() + seconds
        deadline = environ.get(DEADLINE, end)
        self._wait(released, min(end, deadline))
        if released.is_set() or end <= deadline:
            return

        def rest() -> None:
            self._wait(released, end)
            if not self._closed:
                then()

        raise DeadlineOver(rest)

    def _wait(self, released: threading.Event, end: float) -> None:
        while (left := end - time.monotonic()) > 0 and not released.wait(min(left, LOOK_EVERY)):
            self._read_file()

    def wrap(self, service: str, app: "WSGIApplication") -> "WSGIApplication":
        def faulty(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
            fault = self._take(service, environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""))
            if fault is None:
                return app(environ, start_response)
            self._note(f"{fault.action} {environ['REQUEST_METHOD']} {service}{environ.get('PATH_INFO', '')}")
            LOG.info("fault %s on %s %s", fault.action, environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""))
            return self._apply(fault, app, environ, start_response)

        return faulty

    def _note(self, hit: str) -> None:
        if self._path.exists():
            with self._path.with_name(f"{self._path.name}.hits").open("a") as file:
                file.write(f"{hit}\n")

    def _take(self, service: str, method: str, path: str) -> Fault | None:
        self._read_file()
        if not self._rules and not self._file_rules:
            return None
        with self._lock:
            for fault in (*self._rules, *self._file_rules):
                if fault.matches(service, method, path):
                    fault.times -= 1
                    return fault
        return None

    def _read_file(self) -> None:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            version = None
        else:
            version = (stat.st_mtime_ns, stat.st_size)
        if version == self._file_version:
            return
        with self._lock:
            self._file_version = version
            self._file_rules = []
            if version is None:
                self._release()
                return
            try:
                self._file_rules = _parse(yaml.safe_load(self._path.read_text()))
            except (OSError, yaml.YAMLError, TypeError, ValueError, re.error) as error:
                LOG.error("%s is not a list of fault rules and is ignored: %s", self._path, error)

    def _apply(
        self, fault: Fault, app: "WSGIApplication", environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if fault.action == "status":
            drain(environ)
            start_response(f"{fault.status} Injected", [("Content-Type", "text/plain"), ("Content-Length", "15")])
            return [b"injected fault\n"]
        if fault.action == "delay":
            self._hold(fault.seconds, environ, lambda: _carry_out(app, environ))
            return app(environ, start_response)
        if fault.action == "delay_reply":
            return self._delayed(fault, app(environ, start_response), environ)
        if fault.action == "hang":
            self._hold(fault.seconds, environ, lambda: None)
            return _cut_before_headers(start_response)
        reads = environ["REQUEST_METHOD"] in READ_METHODS
        if fault.action == "corrupt":
            if reads:
                return _corrupted(app(environ, start_response), fault.after_bytes)
            environ["wsgi.input"] = _Input(environ["wsgi.input"], fault.after_bytes, breaks=False)
            return app(environ, start_response)
        if fault.action == "drop" and reads:
            return _cut(app(environ, start_response), fault.after_bytes)
        if fault.action == "drop" and fault.after_bytes == 0:
            return _cut_before_headers(start_response)
        if fault.action == "drop":
            environ["wsgi.input"] = _Input(environ["wsgi.input"], fault.after_bytes, breaks=True)
        _carry_out(app, environ)
        return _cut_before_headers(start_response)

    def _delayed(self, fault: Fault, body: Iterable[bytes], environ: "WSGIEnvironment") -> Iterator[bytes]:
        """The request is carried out when its answer is complete."""
        answer = list(body)
        close = getattr(body, "close", None)
        if close is not None:
            close()
        self._hold(fault.seconds, environ, lambda: None)
        yield from answer


def _parse(document: Any) -> list[Fault]:
    if document is None:
        return []
    if not isinstance(document, list):
        raise TypeError("a list is needed")
    known = {each.name for each in fields(Fault)}
    rules = []
    for entry in document:
        if not isinstance(entry, dict) or not set(entry) <= known:
            raise ValueError(f"a rule has the keys {', '.join(sorted(known))}; this one is {entry!r}")
        rules.append(Fault(**entry))
    return rules


def _carry_out(app: "WSGIApplication", environ: "WSGIEnvironment") -> None:
    """Carries out a request and discards the answer."""
    body = app(environ, _ignore_response)
    close = getattr(body, "close", None)
    if close is not None:
        close()


def _ignore_response(_status: str, _headers: list[tuple[str, str]], _error: Any = None) -> Callable[[bytes], object]:
    return lambda _data: None


def _cut_before_headers(start_response: "StartResponse") -> Iterator[bytes]:
    # WSGI can't cut a connection before the headers, so this announces a body that never comes. The status is an error, so
    # that a client that does not read the body does not see a success.
    start_response("500 Cut", [("Content-Type", "application/json"), ("Content-Length", str(ANNOUNCED_LENGTH))])
    yield b"{"
    raise ConnectionCutError("injected fault: the connection is cut")


def _cut(body: Iterable[bytes], after_bytes: int) -> Iterator[bytes]:
    sent = 0
    for chunk in body:
        part = chunk[: max(after_bytes - sent, 0)]
        sent += len(part)
        if part:
            yield part
        if sent >= after_bytes:
            raise ConnectionCutError("injected fault: the connection is cut in the middle of the body")


def _corrupted(body: Iterable[bytes], after_bytes: int) -> Iterator[bytes]:
    sent = 0
    for chunk in body:
        yield _invert(chunk, max(after_bytes - sent, 0))
        sent += len(chunk)


def _invert(chunk: bytes, start: int) -> bytes:
    return chunk[:start] + bytes(255 - value for value in chunk[start : start + 4096]) + chunk[start + 4096 :]


class _Input:
    """A request's body that breaks off, or is wrong, after a number of bytes."""

    def __init__(self, stream: Any, after_bytes: int, breaks: bool) -> None:
        self._stream = stream
        self._left = after_bytes
        self._breaks = breaks
        self._broken = False

    def read(self, size: int = -1) -> bytes:
        return self._pass(self._stream.read(size) if size >= 0 else self._stream.read())

    def readline(self, size: int = -1) -> bytes:
        return self._pass(self._stream.readline(size))

    def _pass(self, chunk: bytes) -> bytes:
        if self._broken or (self._breaks and chunk and self._left == 0):
            raise OSError("injected fault: the connection broke in the middle of the request's body")
        good = self._left
        self._left = max(good - len(chunk), 0)
        if self._breaks:
            self._broken = len(chunk) > good
            return chunk[:good]
        return _invert(chunk, good)
