"""Sends notifications in a thread of its own, so that no operation waits for the message bus, or fails with it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from queue import Full, Queue
from typing import Any

import oslo_messaging

from causeway.context import RequestContext

LOG = logging.getLogger(__name__)

QUEUE_LIMIT = 10_000
STOP_TIMEOUT_SECONDS = 5.0
# How often one message is retried on a broken bus, before the next one is sent.
SEND_RETRIES = 1


@dataclass(frozen=True)
class Outgoing:
    context: RequestContext
    publisher_id: str
    event_type: str
    priority: str  # info | error
    payload: dict[str, Any]


class Sender:
    """Sends messages in the order of `send`. ``counts``: sent, failed (logged), dropped (queue full)."""

    def __init__(self, notifier: oslo_messaging.Notifier) -> None:
        self._notifier = notifier
        self._queue: Queue[Outgoing | None] = Queue(QUEUE_LIMIT)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.counts: Counter[str] = Counter()

    def send(self, message: Outgoing) -> None:
        """Queues a message. Returns at once, and never raises because of the bus."""
        with self._lock:
            if self._closed:
                self.counts["dropped"] += 1
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
                self._thread.start()
            try:
                self._queue.put_nowait(message)
            except Full:
                self.counts["dropped"] += 1
                LOG.warning("notification %s is discarded: %d others wait to be sent", message.event_type, QUEUE_LIMIT)

    def flush(self) -> None:
        """Waits until all messages so far were sent or have failed."""
        self._queue.join()

    def close(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Sends what waits, for up to ``timeout`` seconds. Later messages are discarded."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            self._queue.put(None, timeout=timeout)
        except Full:
            LOG.warning("notifications stop with %d not sent", self._queue.qsize())
            return
        thread.join(timeout)
        if thread.is_alive():
            LOG.warning("notifications stop with %d not sent", self._queue.qsize())

    def _run(self) -> None:
        while True:
            message = self._queue.get()
            try:
                if message is None:
                    return
                self._send(message)
            finally:
                self._queue.task_done()

    def _send(self, message: Outgoing) -> None:
        try:
            prepared = self._notifier.prepare(publisher_id=message.publisher_id, retry=SEND_RETRIES)
            getattr(prepared, message.priority)(message.context, message.event_type, message.payload)
        except Exception as error:  # noqa: BLE001 - drivers raise what their libraries raise; none may end the thread
            self.counts["failed"] += 1
            LOG.warning("notification %s could not be sent: %s: %s", message.event_type, type(error).__name__, error)
        else:
            self.counts["sent"] += 1
