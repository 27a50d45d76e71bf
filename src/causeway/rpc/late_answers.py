"""Answers to calls that take long: who called holds no thread until the answer is there.

A caller that is a task (`causeway.parking`) says in the call's context where it listens. If its call takes longer than
`PROMPT` seconds, the server answers at once that the answer comes late, continues, and sends it to all who listen there; who
does not wait for it ignores it. An answer can get lost, and a server can die: so whoever waits asks the server from time to
time, which keeps its last answers. A server of an earlier release answers when it is done; its caller waits.
"""

from __future__ import annotations

import logging
import threading
import uuid as uuids
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import oslo_messaging

from causeway.context import RequestContext
from causeway.errors import CausewayError

LOG = logging.getLogger(__name__)

# The methods of both endpoints below are called in it: `late_answer` of whoever waits, `late_answer_of` of the server.
NAMESPACE = "late_answers"
# Seconds: what takes longer is answered late.
PROMPT = 1.0
# Answers that a server keeps for callers which missed them.
KEPT = 1000

Reply = dict[str, Any]


@dataclass(frozen=True)
class ListeningContext:
    """A context as it crosses RPC, with where its sender listens for a late answer: a topic of the same message queue."""

    context: RequestContext
    ticket: str
    topic: str

    def to_dict(self) -> dict[str, Any]:
        return self.context.to_dict() | {"late_answer": {"ticket": self.ticket, "topic": self.topic}}


# the caller's side


class Awaited:
    """The late answers that callers of this process wait for. RPC: late_answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[Reply]] = {}

    @contextmanager
    def ticket(self) -> Iterator[tuple[str, Future[Reply]]]:
        """A name for one late answer, and the answer. Before the call: the answer may be faster than the word that it is late."""
        name, answer = uuids.uuid4().hex, Future[Reply]()
        with self._lock:
            self._waiting[name] = answer
        try:
            yield name, answer
        finally:
            with self._lock:
                self._waiting.pop(name, None)

    def close(self) -> None:
        """Nobody listens any more: whoever still waits gets the error that nobody answered."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.set_exception(oslo_messaging.MessagingTimeout("The transport was closed while a call waited"))

    def answered(self, ticket: str, reply: Reply) -> None:
        """An answer has come: perhaps for another process, or for somebody who asked for it meanwhile."""
        with self._lock:
            answer = self._waiting.pop(ticket, None)
        if answer is not None:
            answer.set_result(reply)


class AwaitedEndpoint:
    """RPC: late_answer, sent to all who listen."""

    def __init__(self, awaited: Awaited) -> None:
        self._awaited = awaited

    def late_answer(self, context: RequestContext, *, ticket: str, reply: dict[str, Any]) -> None:  # noqa: ARG002
        self._awaited.answered(ticket, reply)


# the server's side


@dataclass
class LateAnswer:
    """What a server knows of a late answer: neither, if it was started anew since."""

    is_coming: bool = False
    reply: dict[str, Any] | None = None


# Sends a reply (and its ticket, as the first) to whoever listens at a topic.
Send = Callable[[RequestContext, str, str, Reply], None]


class LateAnswers:
    """The answers of one server that come late. RPC: late_answer_of."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._coming: set[str] = set()
        self._kept: OrderedDict[str, Reply] = OrderedDict()

    def promise(self, ticket: str) -> None:
        with self._lock:
            self._coming.add(ticket)

    def answer(self, context: RequestContext, ticket: str, topic: str, reply: Reply) -> None:
        with self._lock:
            self._coming.discard(ticket)
            self._kept[ticket] = reply
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._send(context, ticket, topic, reply)

    def find(self, ticket: str) -> LateAnswer:
        with self._lock:
            return LateAnswer(ticket in self._coming, self._kept.get(ticket))


class LateAnswersEndpoint:
    """RPC: late_answer_of."""

    def __init__(self, answers: LateAnswers) -> None:
        self._answers = answers

    def late_answer_of(self, context: RequestContext, *, ticket: str) -> LateAnswer:  # noqa: ARG002
        return self._answers.find(ticket)


class PatientMessage:
    """An incoming message of oslo.messaging whose sender listens for a late answer.

    Its first heartbeat says that the answer comes late, and is the last: whoever sent it waits for no other.
    """

    def __init__(self, incoming: Any, answers: LateAnswers) -> None:
        wanted = incoming.ctxt.pop("late_answer")
        self._incoming = incoming
        self._answers = answers
        self._ticket, self._topic = wanted["ticket"], wanted["topic"]
        self._lock = threading.Lock()
        self._is_answered = self._is_late = False
        # Heartbeats come at half of this; 0: none.
        self.client_timeout = 2 * PROMPT

    def __getattr__(self, name: str) -> Any:
        return getattr(self._incoming, name)

    def heartbeat(self) -> None:
        with self._lock:
            if self._is_answered or self._is_late:
                return
            self._answers.promise(self._ticket)
            self._is_late, self.client_timeout = True, 0
            self._incoming.reply({"later": self._ticket})

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        with self._lock:
            if not self._is_late:
                self._is_answered = True
                self._incoming.reply(reply, failure=failure)
                return
        if failure is not None:
            reply = {"error": CausewayError("The call failed unexpectedly.", details=repr(failure[1])).to_wire()}
        context = RequestContext.from_dict(self._incoming.ctxt, overwrite=False)
        self._answers.answer(context, self._ticket, self._topic, reply)


def is_patient(incoming: Any) -> bool:
    """Whether a message's sender listens for a late answer."""
    return isinstance(incoming.ctxt.get("late_answer"), dict)
