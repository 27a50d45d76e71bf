"""Transports: connections to message queues. A process has one for each URL. `Transports` makes and closes them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import oslo_messaging
from oslo_concurrency import lockutils
from oslo_messaging._drivers import common as driver_common
from oslo_utils import importutils

from causeway.context import RequestContext
from causeway.rpc.bounded import within
from causeway.rpc.late_answers import AwaitedAnswers
from causeway.rpc.signatures import Signatures, from_options

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outgoing:
    """A message about to be sent. ``server`` is None if any server of the topic may take it."""

    kind: str  # call | cast | fanout
    topic: str
    server: str | None
    method: str
    arguments: dict[str, Any]


class Verdict(Enum):
    """What happens to an outgoing message, for fault injection."""

    DELIVER = "deliver"
    # The message never arrives. A cast is lost; a call ends at once, as after a timeout.
    LOSE_REQUEST = "lose the request"
    # The receiver carries out the message, but the caller gets a timeout.
    LOSE_REPLY = "lose the reply"


# oslo.messaging registers these options only with oslo.config's global object, but reads them from the object that it gets.
LIBRARY_OPTIONS = {
    "oslo_messaging_metrics": "oslo_messaging._metrics.client",
    "oslo_messaging_tracing": "oslo_messaging._tracing.client",
}

# It may also raise, or wait.
SendHook = Callable[[Outgoing], Verdict]


class ContextSerializer(oslo_messaging.Serializer):  # type: ignore[misc]
    """Contexts are sent as dicts. Bodies are plain JSON values already (see `causeway.rpc.endpoint`)."""

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:  # noqa: ARG002
        return entity

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:  # noqa: ARG002
        return entity

    def serialize_context(self, ctxt: RequestContext) -> dict[str, Any]:
        return ctxt.to_dict()

    def deserialize_context(self, ctxt: dict[str, Any]) -> RequestContext:
        context: RequestContext = RequestContext.from_dict(ctxt)
        return context


# How often sending is retried while the message queue can't be reached: for about ten seconds.
SEND_RETRIES = 3


# Threads for calls of tasks (`causeway.parking`) that wait for a reply: the answer, or the promise of a late answer.
CALLS_AT_ONCE = 64

# Seconds after which connections that are not closed yet are abandoned.
CLEANUP_TIMEOUT = 10.0


class Transport:
    """A connection to one message queue, for clients that send and servers that listen."""

    def __init__(self, messaging: Any, owner: Transports) -> None:
        self.messaging = messaging
        self._owner = owner
        self._reached = False

    def reach(self) -> None:
        """Tries once whether RabbitMQ can be reached. Raises oslo.messaging's `MessageDeliveryFailure` if not.

        With the first call oslo.messaging also opens the connection for replies, without a timeout. The connection for sending
        can have a timeout, so it is opened first. Does nothing for drivers without connections.
        """
        if self._reached:
            return
        connect = getattr(self.messaging._driver, "_get_connection", None)
        if connect is not None:
            with connect(driver_common.PURPOSE_SEND, SEND_RETRIES):
                LOG.debug("The message queue can be reached")
        self._reached = True

    @property
    def conf(self) -> Any:
        return self.messaging.conf

    @property
    def awaited(self) -> AwaitedAnswers:
        return self._owner.awaited

    @property
    def callers(self) -> Executor:
        return self._owner.callers

    @property
    def signatures(self) -> Signatures | None:
        return self._owner.signatures

    @property
    def on_send(self) -> SendHook | None:
        return self._owner.on_send

    @property
    def on_reply(self) -> SendHook | None:
        return self._owner.on_reply


class Transports:
    """All transports of a process. ``conf``: an oslo.config ConfigOpts.

    ``on_send`` and ``on_reply``, for tests and fault injection, are called with each message before it is sent, and with each
    call when its answer has come. Raises Misconfigured if the keys for signatures can't be used.
    """

    def __init__(self, conf: Any) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._by_url: dict[str, Transport] = {}
        self.signatures = from_options(conf)
        self.awaited = AwaitedAnswers()
        # While a host does not answer, the call of a task blocks one of these threads, and not the task's.
        self.callers = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="rpc-call")
        self.on_send: SendHook | None = None
        self.on_reply: SendHook | None = None
        for group, name in LIBRARY_OPTIONS.items():
            module = importutils.try_import(name)
            if module is not None:
                conf.register_opts(getattr(module, group), group=group)

    def get(self, url: str) -> Transport:
        """Returns the transport of a URL such as ``rabbit://user:password@host:5672/cell1`` or ``causeway-memory://cell1``.

        Raises oslo.messaging's `InvalidTransportURL` or `DriverLoadFailure`.
        """
        with self._lock:
            transport = self._by_url.get(url)
            if transport is None:
                transport = Transport(oslo_messaging.get_rpc_transport(self._conf, url=url), self)
                _provide_locks(self._conf)
                self._by_url[url] = transport
            return transport

    def cleanup(self, timeout: float = CLEANUP_TIMEOUT) -> None:
        """Closes all transports. Stop the servers first. Calls that still wait end with `RpcTimeout`.

        If RabbitMQ is unreachable and they can't be closed within ``timeout`` seconds, they stay until the process ends.
        """
        with self._lock:
            transports, self._by_url = list(self._by_url.values()), {}

        self.awaited.close()

        def close() -> None:
            for transport in transports:
                transport.messaging.cleanup()
            self.callers.shutdown(wait=False)

        if not within(timeout, "close-transports", close):
            LOG.warning("Connections to the message queue could not be closed and are abandoned: it is unreachable")


def _provide_locks(conf: Any) -> None:
    """Sets the folder of the lock between processes that oslo.messaging's queue manager needs: it has no default."""
    rabbit = conf.oslo_messaging_rabbit if "oslo_messaging_rabbit" in conf else None
    if getattr(rabbit, "use_queue_manager", False) and "OSLO_LOCK_PATH" not in os.environ:
        lockutils.set_defaults(str(Path(conf.state_path) / "locks"))
