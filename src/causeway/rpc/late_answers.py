"""Late answers to long calls, so that the caller holds no thread while it waits.

A caller that is a task (`causeway.parking`) names in the call's context a topic at which it listens. If the call takes longer
than `PROMPT` seconds, the server replies that the answer comes late, and continues. When it has the answer, it sends the answer
to all processes that listen at the topic; a process that does not wait for it ignores it. An answer can get lost, and a server
can die. So the caller regularly asks the server, which keeps its last answers.
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

# The namespace of both endpoints below: `late_answer` is called at the waiting process, `late_answer_of` at the server.
NAMESPACE = "late_answers"
# Of this interface, which servers of all topics have.
VERSION = "1.0"
# Seconds: a call that takes longer is answered late.
PROMPT = 1.0
# The number of answers that a server keeps, for callers that missed them.
KEPT_ANSWERS = 1000

Reply = dict[str, Any]


@dataclass(frozen=True)
class ListeningContext:
    """A context for RPC, with the topic (of the same message queue) at which its sender listens for a late answer."""

    context: RequestContext
    ticket: str
    topic: str

    def to_dict(self) -> dict[str, Any]:
        return self.context.to_dict() | {"late_answer": {"ticket": self.ticket, "topic": self.topic}}


# the caller's side


class AwaitedAnswers:
    """The late answers that callers of this process wait for. RPC: late_answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[Reply]] = {}

    @contextmanager
    def ticket(self) -> Iterator[tuple[str, Future[Reply]]]:
        """Yields a name for one late answer, and the future of that answer.

        Make it before the call: the answer can arrive before the first reply.
        """
        name, answer = uuids.uuid4().hex, Future[Reply]()
        with self._lock:
            self._waiting[name] = answer
        try:
            yield name, answer
        finally:
            with self._lock:
                self._waiting.pop(name, None)

    def close(self) -> None:
        """Ends listening. Callers that still wait get a timeout."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.set_exception(oslo_messaging.MessagingTimeout("The transport was closed while a call waited"))

    def answered(self, ticket: str, reply: Reply) -> None:
        """Passes an answer to its caller. Ignores it if no caller of this process waits for it (any more)."""
        with self._lock:
            answer = self._waiting.pop(ticket, None)
        if answer is not None:
            answer.set_result(reply)


class AwaitedAnswersEndpoint:
    """RPC: late_answer, which is sent to all listeners."""

    def __init__(self, awaited: AwaitedAnswers) -> None:
        self._awaited = awaited

    def late_answer(self, context: RequestContext, *, ticket: str, reply: dict[str, Any]) -> None:  # noqa: ARG002
        self._awaited.answered(ticket, reply)


# the server's side


@dataclass
class LateAnswer:
    """What a server knows about a late answer.

    Neither field is set if the server was restarted since the call, or if the call ended without an answer.
    """

    is_coming: bool = False
    reply: dict[str, Any] | None = None


# (context, ticket, topic, reply): sends the reply, with its ticket, to the listeners at the topic.
Send = Callable[[RequestContext, str, str, Reply], None]


class LateAnswers:
    """The late answers of one server. RPC: late_answer_of."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._coming: set[str] = set()
        self._last_answers: OrderedDict[str, Reply] = OrderedDict()

    def promise(self, ticket: str) -> None:
        with self._lock:
            self._coming.add(ticket)

    def answer(self, context: RequestContext, ticket: str, topic: str, reply: Reply) -> None:
        with self._lock:
            self._coming.discard(ticket)
            self._last_answers[ticket] = reply
            while len(self._last_answers) > KEPT_ANSWERS:
                self._last_answers.popitem(last=False)
        self._send(context, ticket, topic, reply)

    def end(self, ticket: str) -> None:
        """Records that a call has ended. If it was promised a late answer and has none, none comes any more."""
        with self._lock:
            self._coming.discard(ticket)

    def find(self, ticket: str) -> LateAnswer:
        with self._lock:
            return LateAnswer(ticket in self._coming, self._last_answers.get(ticket))


class LateAnswersEndpoint:
    """RPC: late_answer_of."""

    def __init__(self, answers: LateAnswers) -> None:
        self._answers = answers

    def late_answer_of(self, context: RequestContext, *, ticket: str) -> LateAnswer:  # noqa: ARG002
        return self._answers.find(ticket)


class PatientMessage:
    """An incoming message of oslo.messaging whose sender listens for a late answer.

    The first heartbeat becomes the reply that the answer comes late. The sender waits for no other heartbeat, so none follows.
    """

    def __init__(self, incoming: Any, answers: LateAnswers) -> None:
        wanted = incoming.ctxt.pop("late_answer")
        self._incoming = incoming
        self._answers = answers
        self._ticket, self._topic = wanted["ticket"], wanted["topic"]
        self._lock = threading.Lock()
        self._is_answered = self._is_late = False
        # The server sends heartbeats at half of this interval; none if it is 0.
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

    def close(self) -> None:
        """Called when the processing has ended, even if an error that nobody caught has ended it without an answer."""
        with self._lock:
            # A heartbeat that is just being sent must promise nothing any more.
            self._is_answered = True
        self._answers.end(self._ticket)


def is_patient(incoming: Any) -> bool:
    """Whether a message's sender listens for a late answer."""
    wanted = incoming.ctxt.get("late_answer")
    return isinstance(wanted, dict) and all(isinstance(wanted.get(name), str) for name in ("ticket", "topic"))
