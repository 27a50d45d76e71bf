"""An in-memory message queue as an oslo.messaging driver: ``causeway-memory://NAME``.

All transports of one NAME in a process share one broker. So `causeway up` gives each cell its own queue, like virtual hosts of
RabbitMQ. As far as services can see, it behaves like oslo.messaging's RabbitMQ driver:

- an RPC server listens on its topic (shared round-robin with others), on its topic and name, and on its topic's fanout;
- a message without a listener waits in its queue, up to a limit, and is delivered to the first listener. A fanout reaches only
  the present listeners;
- a call without an answer ends in `MessagingTimeout`; if it was not delivered by then, it never is;
- with ``call_monitor_timeout`` a caller waits as long as the server's heartbeats come, up to the overall timeout;
- every message and every reply is converted to JSON and back, so nothing is shared by accident, and a value that can't be sent
  raises at its sender.

The sender's thread passes a message to the listening server's thread pool, so a call costs two switches between threads. Nothing
polls. A broker and its queues live until the last transport of its name is cleaned up.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
import oslo_messaging
from oslo_messaging._drivers import base
from oslo_messaging._drivers import common as driver_common

LOG = logging.getLogger(__name__)

# The most messages that a queue keeps without a listener.
QUEUE_LIMIT = 10_000

_CLOSED = object()
_HEARTBEAT = object()


class _Message:
    """A message in a queue. ``body``: JSON. ``replies``: the queue for the reply; None for a cast."""

    __slots__ = ("body", "client_timeout", "expired", "replies")

    def __init__(self, body: bytes, replies: SimpleQueue[object] | None, client_timeout: float | None) -> None:
        self.body = body
        self.replies = replies
        self.client_timeout = client_timeout
        self.expired = False


class MemoryIncomingMessage(base.RpcIncomingMessage):  # type: ignore[misc]
    """A message on the server's side. ``client_timeout``: the caller's call_monitor_timeout, in seconds."""

    def __init__(self, message: _Message, requeue: Callable[[_Message], None]) -> None:
        context, body = msgspec.json.decode(message.body)
        super().__init__(context, body)
        self.client_timeout = message.client_timeout
        self._message = message
        self._requeue = requeue

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        replies = self._message.replies
        if replies is None:
            return
        if failure is None:
            try:
                replies.put(msgspec.json.encode({"result": reply, "failure": None}))
                return
            except (TypeError, ValueError, UnicodeError) as error:
                failure = (type(error), error, error.__traceback__)
        wire = driver_common.serialize_remote_exception(failure)
        replies.put(msgspec.json.encode({"result": None, "failure": wire}))

    def heartbeat(self) -> None:
        if self._message.replies is not None:
            self._message.replies.put(_HEARTBEAT)

    def requeue(self) -> None:
        self._requeue(self._message)


class MemoryListener(base.Listener):  # type: ignore[misc]
    """Takes messages from queues of a broker and hands each to the server at once."""

    def __init__(self, broker: Broker, queues: list[str], fanouts: list[str]) -> None:
        super().__init__(batch_size=1, batch_timeout=None)
        self._broker = broker
        self._queues = queues
        self._fanouts = fanouts

    def start(self, on_incoming_callback: Callable[[list[MemoryIncomingMessage]], None]) -> None:
        super().start(on_incoming_callback)
        self._broker.subscribe(self, self._queues, self._fanouts)

    def stop(self) -> None:
        self._broker.unsubscribe(self, self._queues, self._fanouts)
        super().stop()

    def cleanup(self) -> None:
        self._broker.unsubscribe(self, self._queues, self._fanouts)

    def deliver(self, queue: str, message: _Message) -> None:
        def requeue(again: _Message) -> None:
            self._broker.put(queue, again)

        self.on_incoming_callback([MemoryIncomingMessage(message, requeue)])


class _Queue:
    __slots__ = ("listeners", "messages", "turn")

    def __init__(self) -> None:
        self.messages: deque[_Message] = deque()
        self.listeners: list[MemoryListener] = []
        self.turn = itertools.count()


class Broker:
    """Named queues.

    Messages are delivered under the lock. Passing one to a thread pool takes microseconds, and an unsubscribed listener gets
    nothing.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._queues: dict[str, _Queue] = {}
        self._fanouts: dict[str, list[MemoryListener]] = {}

    def subscribe(self, listener: MemoryListener, queues: list[str], fanouts: list[str]) -> None:
        with self._lock:
            for name in fanouts:
                self._fanouts.setdefault(name, []).append(listener)
            for name in queues:
                queue = self._queues.setdefault(name, _Queue())
                queue.listeners.append(listener)
                while queue.messages:
                    message = queue.messages.popleft()
                    if not message.expired:
                        listener.deliver(name, message)

    def unsubscribe(self, listener: MemoryListener, queues: list[str], fanouts: list[str]) -> None:
        with self._lock:
            for name in queues:
                queue = self._queues.get(name)
                if queue is not None and listener in queue.listeners:
                    queue.listeners.remove(listener)
            for name in fanouts:
                if listener in self._fanouts.get(name, ()):
                    self._fanouts[name].remove(listener)

    def declare(self, queue: str) -> None:
        """Makes a queue. From now on it keeps messages."""
        with self._lock:
            self._queues.setdefault(queue, _Queue())

    def put(self, name: str, message: _Message, *, discard_oldest: bool = False) -> None:
        """Delivers a message, or keeps it until there is a listener.

        Raises `MessageDeliveryFailure` if the queue is full and its oldest message may not be discarded.
        """
        with self._lock:
            queue = self._queues.setdefault(name, _Queue())
            if queue.listeners:
                turn = next(queue.turn) % len(queue.listeners)
                queue.listeners[turn].deliver(name, message)
                return
            if len(queue.messages) >= QUEUE_LIMIT:
                if not discard_oldest:
                    raise oslo_messaging.MessageDeliveryFailure(
                        f"Queue {name} of {self.name} is full: it has {QUEUE_LIMIT} messages and no listener. Start its service."
                    )
                queue.messages.popleft()
            queue.messages.append(message)

    def put_notification(self, name: str, message: _Message) -> None:
        """Puts one copy of a message into the queue, and one into the queue of each pool of listeners."""
        with self._lock:
            pools = [pool for pool in self._queues if pool.startswith(f"{name}@")]
        for queue in [name, *pools]:
            self.put(queue, message, discard_oldest=True)

    def fan_out(self, name: str, message: _Message) -> None:
        with self._lock:
            for listener in self._fanouts.get(name, ()):
                listener.deliver(name, message)

    def discard(self, name: str, message: _Message) -> None:
        """Deletes a call whose caller no longer waits, so that it is not delivered later."""
        message.expired = True
        with self._lock:
            queue = self._queues.get(name)
            if queue is not None and message in queue.messages:
                queue.messages.remove(message)


_brokers: dict[str, tuple[Broker, int]] = {}
_brokers_lock = threading.Lock()


def _acquire_broker(name: str) -> Broker:
    with _brokers_lock:
        broker, users = _brokers.get(name) or (Broker(name), 0)
        _brokers[name] = (broker, users + 1)
        return broker


def _release_broker(name: str) -> None:
    with _brokers_lock:
        broker, users = _brokers[name]
        if users > 1:
            _brokers[name] = (broker, users - 1)
        else:
            del _brokers[name]


class MemoryDriver(base.BaseDriver):  # type: ignore[misc]
    """The driver behind ``causeway-memory://NAME``; the interface's documentation is in oslo.messaging's base class."""

    def __init__(
        self, conf: Any, url: Any, default_exchange: str | None = None, allowed_remote_exmods: list[str] | None = None
    ) -> None:
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        hosts = ",".join(host.hostname or "" for host in url.hosts)
        self._name = f"{hosts}/{url.virtual_host}" if url.virtual_host else hosts
        self._broker = _acquire_broker(self._name)
        self._lock = threading.Lock()
        self._waiting: set[SimpleQueue[object]] = set()
        self._closed = False

    def require_features(self, requeue: bool = False) -> None:
        """Everything is supported."""

    def send(
        self,
        target: Any,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,  # noqa: ARG002
        transport_options: Any = None,  # noqa: ARG002
    ) -> Any:
        topic = self._address(target)
        body = msgspec.json.encode((ctxt, message))
        if not wait_for_reply:
            self._refuse_if_closed(topic)
            if target.fanout:
                self._broker.fan_out(topic, _Message(body, None, None))
            else:
                self._broker.put(self._queue(topic, target), _Message(body, None, None))
            return None
        return self._call(self._queue(topic, target), body, timeout, call_monitor_timeout)

    def _call(self, queue: str, body: bytes, timeout: float | None, call_monitor_timeout: float | None) -> Any:
        replies: SimpleQueue[object] = SimpleQueue()
        message = _Message(body, replies, call_monitor_timeout)
        with self._lock:
            self._refuse_if_closed(queue)
            self._waiting.add(replies)
        try:
            self._broker.put(queue, message)
            answer = self._wait(replies, timeout, call_monitor_timeout)
        except Empty:
            self._broker.discard(queue, message)
            raise oslo_messaging.MessagingTimeout(f"No reply from {queue} of {self._name}") from None
        finally:
            with self._lock:
                self._waiting.discard(replies)
        if answer is _CLOSED:
            raise oslo_messaging.MessagingTimeout(f"Transport {self._name} was closed while a call waited")
        assert isinstance(answer, bytes)
        reply = msgspec.json.decode(answer)
        if reply["failure"] is not None:
            raise driver_common.deserialize_remote_exception(reply["failure"], self._allowed_remote_exmods)
        return reply["result"]

    @staticmethod
    def _wait(replies: SimpleQueue[object], timeout: float | None, call_monitor_timeout: float | None) -> object:
        """Waits for the reply. Returns it, or `_CLOSED`. Raises `queue.Empty` if none has come in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if call_monitor_timeout:
                left = call_monitor_timeout if left is None else min(left, call_monitor_timeout)
            answer = replies.get(timeout=left)
            if answer is not _HEARTBEAT:
                return answer

    def send_notification(
        self,
        target: Any,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        version: float,  # noqa: ARG002
        retry: int | None = None,  # noqa: ARG002
    ) -> None:
        topic = self._address(target)
        self._refuse_if_closed(topic)
        self._broker.put_notification(topic, _Message(msgspec.json.encode((ctxt, message)), None, None))

    def listen(self, target: Any, batch_size: int, batch_timeout: float | None) -> MemoryListener:  # noqa: ARG002
        topic = self._address(target)
        return MemoryListener(self._broker, [topic, f"{topic}.{target.server}"], [topic])

    def listen_for_notifications(
        self,
        targets_and_priorities: list[tuple[Any, str]],
        pool: str | None,
        batch_size: int,  # noqa: ARG002
        batch_timeout: float | None,  # noqa: ARG002
    ) -> MemoryListener:
        queues = []
        for target, priority in targets_and_priorities:
            topic = f"{self._address(target)}.{priority}"
            queues.append(f"{topic}@{pool}" if pool else topic)
        for queue in queues:
            self._broker.declare(queue)
        return MemoryListener(self._broker, queues, [])

    def cleanup(self) -> None:
        """Wakes all callers that wait for a reply."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for replies in self._waiting:
                replies.put(_CLOSED)
        _release_broker(self._name)

    def _address(self, target: Any) -> str:
        return f"{target.exchange or self._default_exchange}/{target.topic}"

    @staticmethod
    def _queue(topic: str, target: Any) -> str:
        return f"{topic}.{target.server}" if target.server else topic

    def _refuse_if_closed(self, address: str) -> None:
        if self._closed:
            raise oslo_messaging.MessageDeliveryFailure(
                f"Transport {self._name} is closed, so nothing can be sent to {address}"
            )
