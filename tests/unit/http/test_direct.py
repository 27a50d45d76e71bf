"""Applications that are called without a socket: callers see what a server and a socket would show them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import requests
from oslo_context import context as oslo_context
from requests.exceptions import ChunkedEncodingError
from requests.structures import CaseInsensitiveDict

from causeway.http.direct import DEADLINE, DeadlineOver, DirectTransport

URL = "http://inside:80"
PIECE = bytes(range(256)) * 4096


class Pieces:
    """An answer that comes in pieces; knows how many were taken, and whether it was closed."""

    def __init__(self, count: int, failure: Exception | None = None) -> None:
        self.taken = 0
        self.closed = False
        self._count, self._failure = count, failure

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._count):
            self.taken += 1
            yield PIECE
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        self.closed = True


def session_of(application: Any) -> requests.Session:
    made = requests.Session()
    made.mount(URL, DirectTransport(application))
    return made


def answering(body: Iterable[bytes], status: str = "200 OK", length: int | None = None) -> Any:
    def application(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response(status, [("Content-Length", str(length))] if length is not None else [])
        return body

    return application


def seen_by(call: Callable[[requests.Session], object], answer: str = "200 OK") -> dict[str, Any]:
    """The environ that an application gets."""
    seen: dict[str, Any] = {}

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.update(environ)
        start_response(answer, [])
        return []

    call(session_of(application))
    return seen


def test_the_application_sees_what_a_server_would_show() -> None:
    seen = seen_by(lambda session: session.put(f"{URL}/a%2Fb/c%20d?x=1", data=b"abc", headers={"X-Auth-Token": "t"}))
    assert (seen["REQUEST_METHOD"], seen["PATH_INFO"], seen["QUERY_STRING"]) == ("PUT", "/a%2Fb/c d", "x=1")
    assert (seen["HTTP_HOST"], seen["CONTENT_LENGTH"], seen["HTTP_X_AUTH_TOKEN"]) == ("inside:80", "3", "t")
    assert seen["wsgi.input"].read() == b"abc"


def test_an_answer_in_pieces_is_taken_as_it_is_read_and_closed() -> None:
    body = Pieces(50)
    with session_of(answering(body, length=50 * len(PIECE))).get(f"{URL}/", stream=True) as answer:
        assert body.taken == 1
        assert next(answer.iter_content(len(PIECE))) == PIECE
        assert body.taken < 5
        assert not body.closed
    assert body.closed


def test_an_answer_in_pieces_is_whole() -> None:
    body = Pieces(3)
    assert session_of(answering(body)).get(f"{URL}/").content == 3 * PIECE
    assert body.closed


@pytest.mark.parametrize(("failure", "length"), [(RuntimeError("broke"), None), (None, 3 * len(PIECE))])
def test_an_answer_that_breaks_off_is_noticed(failure: Exception | None, length: int | None) -> None:
    body = Pieces(2, failure)
    with pytest.raises(ChunkedEncodingError):
        session_of(answering(body, length=length)).get(f"{URL}/")
    assert body.closed


def test_an_application_that_fails_is_answered_with_500() -> None:
    def fails(_environ: dict[str, Any], _start_response: Any) -> Iterable[bytes]:
        raise RuntimeError("no")

    assert session_of(fails).get(f"{URL}/").status_code == 500
    body = Pieces(0, RuntimeError("before the first piece"))
    assert session_of(answering(body)).get(f"{URL}/").status_code == 500
    assert body.closed
    assert session_of(lambda _environ, _start: []).get(f"{URL}/").status_code == 500


@pytest.mark.parametrize("is_length_known", [True, False])
def test_a_body_in_pieces_is_taken_as_it_is_read(is_length_known: bool) -> None:
    made, left = [], []

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            made.append(1)
            yield PIECE

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if is_length_known:
            assert environ["CONTENT_LENGTH"] == str(20 * len(PIECE))
        else:
            assert environ["HTTP_TRANSFER_ENCODING"] == "chunked"
            assert "CONTENT_LENGTH" not in environ
        assert environ["wsgi.input"].read(100) == PIECE[:100]
        assert len(made) < 3
        left.append(environ["wsgi.input"].read())
        start_response("204 No Content", [])
        return []

    headers = {"Content-Length": str(20 * len(PIECE))} if is_length_known else {}
    request = requests.Request("PUT", f"{URL}/").prepare()
    request.body, request.headers = pieces(), CaseInsensitiveDict(headers)  # type: ignore[assignment]
    assert DirectTransport(application).send(request).status_code == 204
    assert left == [(20 * PIECE)[100:]]


def test_who_sends_a_body_gets_its_own_failure() -> None:
    """The application sees a body that broke, and may put right what it began."""
    seen: list[Exception] = []

    def pieces() -> Iterator[bytes]:
        yield PIECE
        raise LookupError("my disk")

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        try:
            environ["wsgi.input"].read()
        except ValueError as error:
            seen.append(error)
        start_response("400 Bad Request", [])
        return []

    with pytest.raises(LookupError, match="my disk"):
        session_of(application).put(f"{URL}/", data=pieces())
    assert len(seen) == 1


def test_the_caller_does_not_wait_longer_than_it_wants() -> None:
    """What the application does all the same, it does; what the caller would still have sent does not come any more."""
    done, broken = threading.Event(), list[bool]()
    release = threading.Event()

    def application(environ: dict[str, Any], _start_response: Any) -> Iterable[bytes]:
        def rest() -> None:
            release.wait(60)
            try:
                environ["wsgi.input"].read()
            except ValueError:
                broken.append(True)
            done.set()

        assert not release.wait(environ[DEADLINE] - time.monotonic())
        raise DeadlineOver(rest)

    with pytest.raises(requests.ReadTimeout):
        session_of(application).put(f"{URL}/", data=iter((PIECE, PIECE)), timeout=(60, 0.05))
    assert not done.is_set()
    release.set()
    assert done.wait(60)
    assert broken == [True]


def test_the_applications_of_who_waits_forever_have_no_deadline() -> None:
    assert DEADLINE not in seen_by(lambda session: session.get(f"{URL}/"))
    assert DEADLINE in seen_by(lambda session: session.get(f"{URL}/", timeout=5))


def test_the_callers_context_is_its_own() -> None:
    mine = oslo_context.RequestContext(user_id="me")

    def application(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        oslo_context.RequestContext(user_id="somebody")
        start_response("200 OK", [])
        return []

    session_of(application).get(f"{URL}/")
    assert oslo_context.get_current() is mine


def test_what_was_stopped_refuses_and_has_finished() -> None:
    began, proceed, ended = threading.Event(), threading.Event(), list[bool]()

    def application(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not began.is_set():
            began.set()
            proceed.wait(60)
            ended.append(True)
        start_response("200 OK", [])
        return []

    session, transport = requests.Session(), DirectTransport(application)
    session.mount(URL, transport)
    caller = threading.Thread(target=session.get, args=(f"{URL}/",))
    caller.start()
    assert began.wait(60)
    stopping = threading.Thread(target=transport.stop)
    stopping.start()
    with pytest.raises(requests.ConnectionError):
        while stopping.is_alive():
            session.get(f"{URL}/")
    assert not ended
    proceed.set()
    stopping.join()
    assert ended
    caller.join()
