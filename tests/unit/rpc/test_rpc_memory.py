"""The in-memory message queue behaves as RabbitMQ behind oslo.messaging does."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from causeway.rpc import memory

TIMEOUT = 60


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([])
    return conf


class Queue:
    """A message queue of a test's own, through the driver's interface."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._name = f"causeway-memory://{uuid.uuid4()}"
        self._stack = ExitStack()

    def driver(self, **options: Any) -> memory.MemoryDriver:
        url = oslo_messaging.TransportURL.parse(self._conf, self._name)
        driver = memory.MemoryDriver(self._conf, url, default_exchange="test", **options)
        self._stack.callback(driver.cleanup)
        return driver

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def queue(conf: cfg.ConfigOpts) -> Iterator[Queue]:
    queue = Queue(conf)
    yield queue
    queue.close()


TOPIC = oslo_messaging.Target(topic="topic")
SERVER = oslo_messaging.Target(topic="topic", server="host1")

Received = SimpleQueue[memory.MemoryIncomingMessage]


@contextmanager
def listening(driver: memory.MemoryDriver, server: str = "host1") -> Iterator[Received]:
    received: Received = SimpleQueue()
    listener = driver.listen(oslo_messaging.Target(topic="topic", server=server), 1, None)
    listener.start(lambda incoming: received.put(incoming[0]))
    try:
        yield received
    finally:
        listener.stop()
        listener.cleanup()


@contextmanager
def calling(driver: memory.MemoryDriver, **options: Any) -> Iterator[SimpleQueue[Any]]:
    """A call in a thread of its own; its result or error comes out of the queue."""
    results: SimpleQueue[Any] = SimpleQueue()

    def call() -> None:
        try:
            results.put(driver.send(SERVER, {}, {"method": "m"}, wait_for_reply=True, **options))
        except (oslo_messaging.MessagingException, TypeError, ValueError) as error:
            results.put(error)

    thread = threading.Thread(target=call)
    thread.start()
    yield results
    thread.join(TIMEOUT)


def test_transports_of_one_name_share_a_queue_and_nothing_else(queue: Queue, conf: cfg.ConfigOpts) -> None:
    other = Queue(conf)
    with listening(queue.driver()) as received, listening(other.driver()) as elsewhere:
        message = {"method": "m", "args": {"list": [1]}}
        queue.driver().send(SERVER, {"user": "u"}, message)
        incoming = received.get(timeout=TIMEOUT)
        assert (incoming.ctxt, incoming.message) == ({"user": "u"}, message)
        arguments: Any = message["args"]
        assert incoming.message["args"]["list"] is not arguments["list"]
        assert elsewhere.empty()
    other.close()


def test_what_cannot_be_written_as_json_raises_at_the_sender(queue: Queue) -> None:
    with pytest.raises(TypeError):
        queue.driver().send(SERVER, {}, {"method": object()})


def test_heartbeats_keep_a_caller_waiting(queue: Queue) -> None:
    driver = queue.driver()
    pause = threading.Event()
    with listening(driver) as received, calling(driver, timeout=TIMEOUT, call_monitor_timeout=3) as results:
        incoming = received.get(timeout=TIMEOUT)
        assert incoming.client_timeout == 3
        for _ in range(7):
            pause.wait(0.5)
            incoming.heartbeat()
        incoming.reply({"result": 5})
        assert results.get(timeout=TIMEOUT) == {"result": 5}


def test_a_caller_without_heartbeats_fails_long_before_its_timeout(queue: Queue) -> None:
    driver = queue.driver()
    with listening(driver), calling(driver, timeout=3600, call_monitor_timeout=0.1) as results:
        assert isinstance(results.get(timeout=TIMEOUT), oslo_messaging.MessagingTimeout)


def test_heartbeats_do_not_outlast_the_timeout(queue: Queue) -> None:
    driver = queue.driver()
    stop = threading.Event()
    with listening(driver) as received, calling(driver, timeout=0.3, call_monitor_timeout=0.2) as results:
        incoming = received.get(timeout=TIMEOUT)

        def beat() -> None:
            while not stop.wait(0.02):
                incoming.heartbeat()

        beating = threading.Thread(target=beat)
        beating.start()
        assert isinstance(results.get(timeout=TIMEOUT), oslo_messaging.MessagingTimeout)
        stop.set()
        beating.join(TIMEOUT)
        incoming.reply("nobody waits for this")


@pytest.mark.parametrize(
    ("error", "expected"), [(ValueError("bad"), ValueError), (cfg.NoSuchOptError("name"), oslo_messaging.RemoteError)]
)
def test_a_failure_is_raised_at_the_caller_if_its_class_may_be(
    queue: Queue, error: Exception, expected: type[Exception]
) -> None:
    driver = queue.driver()
    with listening(driver) as received, calling(driver, timeout=TIMEOUT) as results:
        received.get(timeout=TIMEOUT).reply(failure=(type(error), error, None))
        assert isinstance(results.get(timeout=TIMEOUT), expected)


def test_an_answer_that_cannot_be_sent_reaches_the_caller_as_a_failure(queue: Queue) -> None:
    driver = queue.driver()
    with listening(driver) as received, calling(driver, timeout=TIMEOUT) as results:
        received.get(timeout=TIMEOUT).reply(object())
        assert isinstance(results.get(timeout=TIMEOUT), TypeError)


def test_closing_wakes_a_caller(queue: Queue) -> None:
    driver = queue.driver()
    with listening(queue.driver()) as received, calling(driver, timeout=3600) as results:
        received.get(timeout=TIMEOUT)
        driver.cleanup()
        assert isinstance(results.get(timeout=TIMEOUT), oslo_messaging.MessagingTimeout)
    with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="closed"):
        driver.send(SERVER, {}, {"method": "m"})


def test_a_queue_that_nobody_reads_is_bounded(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "QUEUE_LIMIT", 3)
    driver = queue.driver()
    for number in range(3):
        driver.send(SERVER, {}, {"number": number})
    with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="full"):
        driver.send(SERVER, {}, {"number": 3})
    with listening(driver) as received:
        assert [received.get(timeout=TIMEOUT).message["number"] for _ in range(3)] == [0, 1, 2]


def test_what_one_server_left_another_of_its_name_gets(queue: Queue) -> None:
    driver = queue.driver()
    with listening(driver):
        pass
    driver.send(SERVER, {}, {"number": 1})
    driver.send(TOPIC, {}, {"number": 2})
    with listening(driver, "host2") as received:
        assert received.get(timeout=TIMEOUT).message == {"number": 2}
        with pytest.raises(Empty):
            received.get_nowait()
    with listening(driver) as received:
        assert received.get(timeout=TIMEOUT).message == {"number": 1}


def test_a_fanout_is_for_those_who_listen_now(queue: Queue) -> None:
    driver = queue.driver()
    fanout = oslo_messaging.Target(topic="topic", fanout=True)
    driver.send(fanout, {}, {"number": 1})
    with listening(driver) as first, listening(driver, "host2") as second:
        driver.send(fanout, {}, {"number": 2})
        assert [queue.get(timeout=TIMEOUT).message for queue in (first, second)] == [{"number": 2}] * 2


def test_notifications_wait_and_each_pool_gets_a_copy(conf: cfg.ConfigOpts) -> None:
    url = f"causeway-memory://{uuid.uuid4()}"
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    notifier = oslo_messaging.Notifier(transport, "compute:host1", driver="messaging", topics=["versioned"])
    seen: dict[str, SimpleQueue[Any]] = {"": SimpleQueue(), "billing": SimpleQueue()}

    class Endpoint:
        def __init__(self, pool: str) -> None:
            self._pool = pool

        def info(self, ctxt: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> None:  # noqa: ARG002
            seen[self._pool].put((publisher_id, event_type, payload))

    def listener(pool: str) -> Any:
        return oslo_messaging.get_notification_listener(
            transport, [oslo_messaging.Target(topic="versioned")], [Endpoint(pool)], pool=pool or None
        )

    notifier.info({}, "instance.create.start", {"number": 1})
    listeners = [listener(pool) for pool in seen]
    for each in listeners:
        each.start()
    notifier.info({}, "instance.create.end", {"number": 2})
    published = ("compute:host1", "instance.create.end", {"number": 2})
    assert seen[""].get(timeout=TIMEOUT)[1] == "instance.create.start"
    assert seen[""].get(timeout=TIMEOUT) == published
    assert seen["billing"].get(timeout=TIMEOUT) == published
    for each in listeners:
        each.stop()
        each.wait()
    transport.cleanup()


def test_many_callers_get_each_their_own_answer(queue: Queue) -> None:
    driver = queue.driver()
    wrong: list[int] = []
    listener = driver.listen(SERVER, 1, None)
    listener.start(lambda incoming: incoming[0].reply(incoming[0].message["number"]))

    def call(first: int) -> None:
        for number in range(first, first + 200):
            if driver.send(SERVER, {}, {"number": number}, wait_for_reply=True, timeout=TIMEOUT) != number:
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(first * 1000,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    listener.stop()
    assert not wrong


def test_a_broker_goes_with_its_last_transport(queue: Queue) -> None:
    before = dict(memory._brokers)
    driver = queue.driver()
    driver.send(SERVER, {}, {"method": "m"})
    driver.cleanup()
    driver.cleanup()
    assert memory._brokers == before
