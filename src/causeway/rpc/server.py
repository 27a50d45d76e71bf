"""RPC servers: a service listening on its topic."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import oslo_messaging
from oslo_messaging.rpc import server as messaging_server
from oslo_utils import versionutils

from causeway import metrics
from causeway.context import RequestContext
from causeway.errors import CausewayError, NoSuchMethod, SenderNotTrusted
from causeway.rpc import cell_conductor, compute, super_conductor
from causeway.rpc.bounded import within
from causeway.rpc.client import RpcClient
from causeway.rpc.endpoint import Endpoint, Reply, expose, failure
from causeway.rpc.heartbeat import Heartbeats
from causeway.rpc.late_answers import NAMESPACE, VERSION, LateAnswers, LateAnswersEndpoint, PatientMessage, is_patient
from causeway.rpc.plain import problem_of
from causeway.rpc.senders import may_send
from causeway.rpc.signatures import Refusal, Signatures
from causeway.rpc.transport import ContextSerializer, Transport

LOG = logging.getLogger(__name__)

# Where hosts report, which may be compromised.
REPORTED_TO = frozenset({cell_conductor.TOPIC, super_conductor.TOPIC})
# Seconds for which `RpcServer.stop` waits for running work.
STOP_TIMEOUT = 30.0
# Seconds for which `RpcServer.stop` waits for the listener, which needs up to five if RabbitMQ can be reached.
UNLISTEN_TIMEOUT = 15.0
# Seconds for which a refused message waits for its turn to be answered.
REFUSAL_PATIENCE = 1.0


class Dispatcher(oslo_messaging.RPCDispatcher):  # type: ignore[misc]
    """Finds the method of a message, and runs it. Always returns a reply, whatever the method raises."""

    def __init__(self, endpoints: Sequence[Endpoint], topic: str, name: str, heartbeats: Heartbeats) -> None:
        super().__init__([], ContextSerializer())
        self._endpoints = endpoints
        self._topic = topic
        self._name = name
        self._heartbeats = heartbeats

    def dispatch(self, incoming: Any) -> Reply:
        context = self.serializer.deserialize_context(incoming.ctxt)
        if self._topic == compute.TOPIC:
            # No control plane of this release sends a host a user's token. One that came all the same is not used or passed on.
            context = context.tokenless(context.key_grant)
        with self._heartbeats.during(incoming):
            reply = self._dispatch(context, incoming.message)
        if "error" in reply:
            LOG.info("%s on %s failed: %s", incoming.message.get("method"), self._name, reply["error"]["message"])
        return reply

    def _dispatch(self, context: RequestContext, message: dict[str, Any]) -> Reply:
        name, version = message["method"], message.get("version", "1.0")
        arguments = message.get("args", {})
        context.resource_uuid = _instance_uuid(arguments) or context.resource_uuid
        if self._topic in REPORTED_TO and (problem := problem_of(arguments)) is not None:
            return failure(CausewayError(f"The arguments of {name} can't be used: {problem}.", details=self._name))
        try:
            for endpoint in self._endpoints:
                if endpoint.namespace == message.get("namespace") and name in endpoint.methods:
                    if not versionutils.is_compatible(version, endpoint.version):
                        return failure(
                            CausewayError(
                                f"RPC method {name} was called in version {version},"
                                f" this service understands {endpoint.version}: upgrade it, or set an upgrade level.",
                                details=self._name,
                            )
                        )
                    with metrics.Timed(metrics.RPC_SERVED, self._topic, name) as timed:
                        reply = endpoint.methods[name](context, arguments)
                        if "error" in reply:
                            timed.outcome = "error"
                    return reply
            return failure(NoSuchMethod(name, details=self._name))
        except Exception as error:
            # This is the boundary of the service: the caller gets every error.
            LOG.exception("RPC method %s failed unexpectedly", name)
            return failure(
                CausewayError(
                    f"{name} failed unexpectedly: {type(error).__name__}.", details=f"{self._name}: {error!r}"
                )
            )


def _instance_uuid(arguments: Any) -> str | None:
    """Returns the uuid of the server that a request is about, for log lines; None if it is about no server."""
    if not isinstance(arguments, dict):
        return None
    instance = arguments.get("instance")
    found = instance.get("uuid") if isinstance(instance, dict) else arguments.get("instance_uuid")
    return found if isinstance(found, str) else None


def _resource(incoming: Any) -> str:
    """The uuid of the server that requests are about; empty: they are about none."""
    return _instance_uuid(incoming[0].message.get("args", {})) or ""


class MessagingServer(messaging_server.RPCServer):  # type: ignore[misc]
    """oslo.messaging's server, with a named thread pool, checks of signatures, and a count of the requests that are running."""

    def __init__(
        self,
        transport: Any,
        target: Any,
        dispatcher: Dispatcher,
        name: str,
        late_answers: LateAnswers,
        signatures: Signatures | None = None,
        refusals: int = 1,
    ) -> None:
        """``refusals``: how many refused messages are answered at once. Others wait for a moment, and then get no answer."""
        self._late_answers = late_answers
        self._signatures = signatures
        self._refusals = threading.Semaphore(refusals)
        self._waiting = metrics.RPC_WAITING.labels(target.topic)
        self._running = metrics.RPC_RUNNING.labels(target.topic)
        super().__init__(transport, target, dispatcher)
        self._executor_cls = partial(ThreadPoolExecutor, thread_name_prefix=name)
        self._idle = threading.Condition()
        self._unfinished = 0
        self._resources: Counter[str] = Counter()

    def _on_incoming(self, incoming: Any) -> None:
        with self._idle:
            self._unfinished += 1
            self._resources[_resource(incoming)] += 1
        self._waiting.inc()
        super()._on_incoming(incoming)

    def _process_incoming(self, incoming: Any) -> None:
        self._waiting.dec()
        self._running.inc()
        messages: list[Any] = []
        try:
            # Checked here, not in the dispatcher, because the topic for a late answer is used before the dispatcher is called.
            trusted = [each for each in incoming if self._is_trusted(each)]
            messages = [PatientMessage(each, self._late_answers) if is_patient(each) else each for each in trusted]
            if messages:
                super()._process_incoming(messages)
        finally:
            for message in messages:
                if isinstance(message, PatientMessage):
                    message.close()
            self._running.dec()
            with self._idle:
                self._unfinished -= 1
                resource = _resource(incoming)
                self._resources[resource] -= 1
                if not self._resources[resource]:
                    del self._resources[resource]
                if not self._unfinished:
                    self._idle.notify_all()

    def _is_trusted(self, incoming: Any) -> bool:
        """Returns whether a message may be carried out. If not, answers the message with the reason."""
        if self._signatures is None:
            return True
        topic, server = self._target.topic, self._target.server
        try:
            self._signatures.check(topic, server, incoming.ctxt, incoming.message, may_send)
        except Refusal as refused:
            # A stranger's message can have a name of any length, with line breaks.
            method = f"{incoming.message.get('method')!r:.80}"
            LOG.warning("%s was refused by %s on %s: %s", method, topic, server, refused)
            self._refuse(incoming, SenderNotTrusted(method, details=f"{topic} on {server}: {refused}"))
            return False
        return True

    def _refuse(self, incoming: Any, refusal: SenderNotTrusted) -> None:
        try:
            # In any case: RabbitMQ would deliver it again.
            incoming.acknowledge()
            # An answer to a queue that does not exist takes a minute. Strangers must not block all threads with it.
            if self._refusals.acquire(timeout=REFUSAL_PATIENCE):
                try:
                    incoming.reply(failure(refusal))
                finally:
                    self._refusals.release()
        except Exception:
            # The messaging driver can raise any error. The caller gets a timeout.
            LOG.warning("A refused message was not answered", exc_info=True)

    def resources(self) -> set[str]:
        """Returns the uuids of the servers whose requests are running or wait for a thread."""
        with self._idle:
            return set(self._resources) - {""}

    def finish(self, timeout: float) -> int:
        """Waits up to ``timeout`` seconds for running requests, after `stop`. Returns how many have not ended."""
        with self._idle:
            self._idle.wait_for(lambda: not self._unfinished, timeout)
            left = self._unfinished
        if left:
            self._work_executor.shutdown(wait=False, cancel_futures=True)
            self.listener.cleanup()
        else:
            self.wait()
        return left


class RpcServer:
    """Listens on a topic as ``server_name``, and runs calls on up to ``threads`` threads.

    ``endpoints``: plain objects, whose public methods can all be called with version 1.0, or results of `expose`. The attribute
    ``endpoints`` has all of them as results of `expose`, so that a test can compare them with the calls of clients.
    """

    def __init__(
        self,
        transport: Transport,
        topic: str,
        server_name: str,
        endpoints: Sequence[object],
        *,
        threads: int = 64,
    ) -> None:
        self.topic = topic
        self.server_name = server_name
        self._threads = threads
        self._listening = False
        name = f"rpc-{topic}-{server_name}"
        self._heartbeats = Heartbeats(name)
        late = LateAnswers(partial(_send_late, transport))
        exposed = [endpoint if isinstance(endpoint, Endpoint) else expose(endpoint) for endpoint in endpoints]
        self.endpoints = tuple(exposed)
        exposed.append(expose(LateAnswersEndpoint(late), VERSION, NAMESPACE))
        self._server = MessagingServer(
            transport.messaging,
            oslo_messaging.Target(topic=topic, server=server_name),
            Dispatcher(exposed, topic, f"{topic} on {server_name}", self._heartbeats),
            name,
            late,
            transport.signatures,
            max(1, threads // 4),
        )

    def start(self) -> None:
        """Starts to listen. The queue delivers the messages that waited in it."""
        self._server.start(override_pool_size=self._threads)
        self._listening = True

    def resources(self) -> set[str]:
        """Returns the uuids of the servers whose requests are running or wait for a thread."""
        return self._server.resources()

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Takes no new messages, and waits up to ``timeout`` seconds for running requests. The server may be started again.

        oslo.messaging can end a listener only while RabbitMQ can be reached. Otherwise the listener is abandoned after a while.
        """
        if not self._listening:
            return
        self._listening = False
        started = time.monotonic()
        if not within(min(timeout, UNLISTEN_TIMEOUT), f"stop-{self.topic}", self._server.stop):
            LOG.warning(
                "%s on %s: the message queue is unreachable, so its listener is abandoned",
                self.topic,
                self.server_name,
            )
            self._heartbeats.stop()
            return
        left = self._server.finish(timeout)
        if left:
            LOG.warning(
                "%s on %s stopped with %d requests unfinished after %.1f s",
                self.topic,
                self.server_name,
                left,
                time.monotonic() - started,
            )
        self._heartbeats.stop()


def _send_late(transport: Transport, context: RequestContext, ticket: str, topic: str, reply: Reply) -> None:
    try:
        RpcClient(transport, topic, namespace=NAMESPACE).cast(
            context, "late_answer", fanout=True, ticket=ticket, reply=reply
        )
    except CausewayError as error:
        LOG.warning(
            "A late answer could not be sent; its caller asks for it later: %s %s", error.message, error.details
        )
