"""RPC clients: typed calls and casts to a topic."""

from __future__ import annotations

import time
from concurrent.futures import Future
from types import NoneType
from typing import Any, TypeVar

import msgspec
import oslo_messaging
from oslo_config import cfg

from causeway import errors, metrics, parking
from causeway.context import RequestContext
from causeway.rpc import counters
from causeway.rpc.endpoint import Reply, from_wire, to_wire
from causeway.rpc.key_grants import grant_for
from causeway.rpc.late_answers import NAMESPACE, VERSION, LateAnswer, ListeningContext
from causeway.rpc.plain import problem_of
from causeway.rpc.signatures import SignedContext
from causeway.rpc.transport import SEND_RETRIES, ContextSerializer, Outgoing, Transport, Verdict

T = TypeVar("T")

LONG_RPC_TIMEOUT = 1800


class RpcClient:
    """Sends to the servers of a topic.

    ``version``: the version of the interface that callers are written for. ``version_cap`` (an upgrade level): the newest one
    that all servers understand; None for no limit. Ask `can_send` before using anything newer than the oldest supported
    version. ``listens_at``: the topic at which this process listens for late answers (`AwaitedAnswersEndpoint`), so that a task
    (`causeway.parking`) holds no thread while it waits; None: nowhere. ``to_hosts``: the servers are hosts, which get no token of
    a user.
    """

    def __init__(
        self,
        transport: Transport,
        topic: str,
        version: str = "1.0",
        version_cap: str | None = None,
        namespace: str | None = None,
        listens_at: str | None = None,
        *,
        to_hosts: bool = False,
    ) -> None:
        self.topic = topic
        self._to_hosts = to_hosts
        self._listens_at = listens_at
        self._transport = transport
        self._client = oslo_messaging.get_rpc_client(
            transport.messaging,
            oslo_messaging.Target(topic=topic, version=version, namespace=namespace),
            version_cap=version_cap,
            serializer=ContextSerializer(),
            retry=SEND_RETRIES,
        )

    def can_send(self, version: str) -> bool:
        """Whether the version cap allows messages of this version."""
        allowed: bool = self._client.can_send_version(version)
        return allowed

    def call(
        self,
        context: RequestContext,
        method: str,
        *,
        result: type[T],
        server: str | None = None,
        timeout: float | None = None,
        monitor: bool = False,
        silence: float | None = None,
        version: str | None = None,
        **arguments: Any,
    ) -> T:
        """Calls a method and waits for its result, which has the type ``result`` (``type(None)`` for none).

        ``timeout``: seconds, by default the option ``rpc_response_timeout``. ``monitor``, for long calls: the caller waits up
        to ``timeout`` (by default the option ``long_rpc_timeout``), but only while the server sends heartbeats: ``silence``
        seconds without one are too many (at most and by default ``rpc_response_timeout``).

        Raises the error that the method raised; `RpcTimeout` if no answer came, so the method may have run or not;
        `ServiceFailed` if the message queue did not take the message; `OperationFailed` if the version cap forbids the call.
        """
        monitor_timeout = None
        if monitor:
            longest = self._option("rpc_response_timeout", 60)
            monitor_timeout = longest if silence is None else min(silence, longest)
            timeout = timeout if timeout is not None else self._option("long_rpc_timeout", LONG_RPC_TIMEOUT)
        elif timeout is None:
            timeout = self._option("rpc_response_timeout", 60)
        with metrics.Timed(metrics.RPC_CALLS, self.topic, method):
            return self._call(context, method, result, server, timeout, monitor_timeout, version, arguments)

    def _call(
        self,
        context: RequestContext,
        method: str,
        result: type[T],
        server: str | None,
        timeout: float,
        monitor_timeout: float | None,
        version: str | None,
        arguments: dict[str, Any],
    ) -> T:
        wire = to_wire(arguments)
        context = self._for_hosts(context, server, wire) if self._to_hosts else context
        verdict = self._consult("call", server, method, arguments)
        counters.count("call", self.topic, method)
        if verdict is Verdict.LOSE_REQUEST:
            raise self._timeout(method, server, 0)
        started = time.monotonic()
        sending = self._prepare(
            server=server, timeout=timeout, call_monitor_timeout=monitor_timeout, **_without_none(version=version)
        )
        try:
            self._transport.reach()
            if monitor_timeout is not None and self._listens_at is not None and parking.in_task():
                reply = self._call_patiently(sending, context, method, wire, server, started + timeout)
            else:
                reply = sending.call(self._with_signature(context, sending, method, wire), method, **wire)
        except oslo_messaging.MessagingTimeout:
            raise self._timeout(method, server, time.monotonic() - started) from None
        except oslo_messaging.RemoteError as error:
            raise errors.CausewayError(
                f"{method} failed unexpectedly: {error.exc_type}.", details=f"{self._where(server)}: {error.value}"
            ) from error
        except Exception as error:
            # Drivers raise errors of their libraries too, such as kombu's OperationalError.
            raise self._not_sent(method, server, error) from error
        if self._transport.on_reply is not None and verdict is Verdict.DELIVER:
            verdict = self._transport.on_reply(Outgoing("call", self.topic, server, method, arguments))
        if verdict is Verdict.LOSE_REPLY:
            raise self._timeout(method, server, time.monotonic() - started)
        return self._result_in(reply, method, server, result)

    def _result_in(self, reply: Any, method: str, server: str | None, result: type[T]) -> T:
        """Returns the result in a reply, which may be any JSON. Raises the error in it."""
        if isinstance(reply, dict) and "error" in reply:
            raise errors.from_wire(reply["error"])
        if result is NoneType:
            # Whatever was said, nobody reads it.
            return None  # type: ignore[return-value]
        try:
            if not isinstance(reply, dict) or "result" not in reply:
                raise msgspec.ValidationError("it has neither a result nor an error")
            if (problem := problem_of(reply["result"], may_have_nul=result is str)) is not None:
                raise msgspec.ValidationError(problem)
            return from_wire(reply["result"], result)
        except msgspec.ValidationError as error:
            raise errors.CausewayError(
                f"The answer to {method} has an unexpected form: {error}. Upgrade the service, or the caller.",
                details=self._where(server),
            ) from error

    def _call_patiently(
        self,
        sending: Any,
        context: RequestContext,
        method: str,
        wire: dict[str, Any],
        server: str | None,
        end: float,
    ) -> Reply:
        """Calls for a task, which holds no thread while it waits. Returns the reply.

        ``end``: until when to wait, on the monotonic clock. Raises MessagingTimeout if no reply has come by then.
        """
        with self._transport.awaited.ticket() as (ticket, answer):
            listening = self._with_signature(
                ListeningContext(context, ticket, str(self._listens_at)), sending, method, wire
            )
            reply: Reply = parking.result_of(self._transport.callers.submit(sending.call, listening, method, **wire))
            while "later" in reply:
                left = end - time.monotonic()
                if left <= 0:
                    raise oslo_messaging.MessagingTimeout(f"No answer to {method} in time")
                try:
                    return parking.result_of(answer, min(left, self._option("rpc_response_timeout", 60)))
                except TimeoutError:
                    reply = self._ask_for_answer(context, server, ticket, answer) or reply
            return reply

    def _ask_for_answer(
        self, context: RequestContext, server: str | None, ticket: str, answer: Future[Reply]
    ) -> Reply | None:
        """Asks the server for a reply that has not come. Returns None if the server is still working on the call.

        Raises MessagingTimeout if the server does not know the call.
        """
        patience = self._option("rpc_response_timeout", 60)
        asking = self._prepare(server=server, namespace=NAMESPACE, version=VERSION, timeout=patience)
        name, wire = "late_answer_of", {"ticket": ticket}
        call = self._transport.callers.submit(
            asking.call, self._with_signature(context, asking, name, wire), name, **wire
        )
        known = self._result_in(parking.result_of(call), name, server, LateAnswer)
        if known.reply is not None or answer.done():
            return known.reply or answer.result()
        if known.is_coming:
            return None
        raise oslo_messaging.MessagingTimeout("The server was restarted after the call")

    def cast(
        self,
        context: RequestContext,
        method: str,
        *,
        server: str | None = None,
        fanout: bool = False,
        version: str | None = None,
        **arguments: Any,
    ) -> None:
        """Sends a message without an answer: to a server, to any server of the topic, or (``fanout``) to all of them.

        Raises `ServiceFailed` if the message queue did not take the message, `OperationFailed` if the version cap forbids it.
        """
        kind = "fanout" if fanout else "cast"
        wire = to_wire(arguments)
        context = self._for_hosts(context, server, wire) if self._to_hosts else context
        verdict = self._consult(kind, server, method, arguments)
        counters.count(kind, self.topic, method)
        if verdict is Verdict.LOSE_REQUEST:
            return
        try:
            sending = self._prepare(server=server, fanout=fanout, **_without_none(version=version))
            sending.cast(self._with_signature(context, sending, method, wire), method, **wire)
        except Exception as error:
            # As in `call`.
            raise self._not_sent(method, server, error) from error

    def _for_hosts(self, context: RequestContext, server: str | None, wire: dict[str, Any]) -> RequestContext:
        return context.tokenless(grant_for(self._transport.conf, context, server, wire))

    def _with_signature(
        self, context: RequestContext | ListeningContext, sending: Any, method: str, wire: dict[str, Any]
    ) -> RequestContext | ListeningContext | SignedContext:
        """Returns the context to send. If this process has a key, the context has a signature of the message."""
        signatures = self._transport.signatures
        if signatures is None or not signatures.signs:
            return context
        return SignedContext(signatures, context, sending.target, method, wire)

    def _prepare(self, **target: Any) -> Any:
        return self._client.prepare(**target)

    def _consult(self, kind: str, server: str | None, method: str, arguments: dict[str, Any]) -> Verdict:
        hook = self._transport.on_send
        if hook is None:
            return Verdict.DELIVER
        return hook(Outgoing(kind, self.topic, server, method, arguments))

    def _option(self, name: str, default: float) -> float:
        try:
            return float(getattr(self._transport.conf, name))
        except cfg.NoSuchOptError:
            return default

    def _where(self, server: str | None) -> str:
        return f"{self.topic} on {server}" if server else self.topic

    def _timeout(self, method: str, server: str | None, seconds: float) -> errors.RpcTimeout:
        return errors.RpcTimeout(method, self._where(server), round(seconds, 1))

    def _not_sent(self, method: str, server: str | None, error: Exception) -> errors.OperationFailed:
        if isinstance(error, oslo_messaging.RPCVersionCapError):
            return errors.OperationFailed(
                f"{method} is not possible until all services are upgraded and no upgrade level forbids it.",
                details=f"{self._where(server)}: {error}",
            )
        return errors.ServiceFailed(
            f"The message queue did not take the request {method}. Try again when it can be reached.",
            details=f"{self._where(server)}: {error}",
        )


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
