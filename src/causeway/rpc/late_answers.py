"""Late answers to long calls, for which the caller holds no thread.

A caller that is a task (`causeway.parking`) says in the call's context where it listens. If the call takes longer than `PROMPT`
seconds, the server replies that the answer will come late, and continues. Then it sends the answer to all processes that listen
there; those that do not wait for it ignore it. An answer can get lost, and a server can die, so the waiting caller regularly
asks the server, which keeps its last answers. A server of an earlier release replies when it is done, and its caller waits.
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
    """A context for RPC, with the topic (of the same message queue) at which its sender listens for a late answer."""

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
        """Yields a name for one late answer, and its future.

        Needed before the call: the answer may arrive before the first reply.
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
        """Takes an answer. It may be for another process, or already known to the caller that asked for it."""
        with self._lock:
            answer = self._waiting.pop(ticket, None)
        if answer is not None:
            answer.set_result(reply)


class AwaitedEndpoint:
    """RPC: late_answer, which is sent to all listeners."""

    def __init__(self, awaited: Awaited) -> None:
        self._awaited = awaited

    def late_answer(self, context: RequestContext, *, ticket: str, reply: dict[str, Any]) -> None:  # noqa: ARG002
        self._awaited.answered(ticket, reply)


# the server's side


@dataclass
class LateAnswer:
    """What a server knows about a late answer; neither field is set if it was restarted since, or its work ended without one."""

    is_coming: bool = False
    reply: dict[str, Any] | None = None


# Sends a reply, with its ticket, to the listeners at a topic.
Send = Callable[[RequestContext, str, str, Reply], None]


class LateAnswers:
    """The late answers of one server. RPC: late_answer_of."""

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

    def end(self, ticket: str) -> None:
        """Ends the wait for an answer that was promised, unless it came."""
        with self._lock:
            self._coming.discard(ticket)

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

    Its first heartbeat says that the answer will come late. No other follows, since the sender does not wait for any.
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

    def close(self) -> None:
        """Ends its processing. Something that nobody catches may have ended it without an answer."""
        with self._lock:
            # A heartbeat that is under way promises nothing any more.
            self._is_answered = True
        self._answers.end(self._ticket)


def is_patient(incoming: Any) -> bool:
    """Whether a message's sender listens for a late answer."""
    wanted = incoming.ctxt.get("late_answer")
    return isinstance(wanted, dict) and all(isinstance(wanted.get(name), str) for name in ("ticket", "topic"))
