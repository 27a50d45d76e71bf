"""Who consumes versioned notifications: a process of its own with nothing but oslo.messaging, as billing systems have it.

``python consumer.py URL FILE`` listens on the topic ``versioned_notifications`` and writes what it hears, a line of JSON each.
`consumer` starts that; `check_move` and `secrets_of` are what tests hold against what it heard.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_service import backend

# As every program has to that uses oslo.messaging without Eventlet, before it is imported.
backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402

TOPIC = "versioned_notifications"
PRIORITIES = ("info", "error", "warn", "debug", "critical", "audit", "sample")
START_SECONDS, PATIENCE = 60, 60
PUBLISHER = re.compile(r"^nova-(api|conductor|compute|scheduler):[\w.-]+$")
EVENT = re.compile(r"^[a-z_]+(\.[a-z_]+){1,2}$")
VERSION = re.compile(r"^\d+\.\d+$")


# What services need in their configuration to send them.
VERSIONED: dict[str, dict[str, Any]] = {
    "notifications": {"notification_format": "versioned"},
    "oslo_messaging_notifications": {"driver": "messagingv2"},
}


class Writer:
    """An endpoint with a method for each priority."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        for priority in PRIORITIES:
            setattr(self, priority, self._writing(priority))

    def _writing(self, priority: str) -> Any:
        def write(context: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> None:
            heard = {
                "priority": priority,
                "context": context,
                "publisher_id": publisher_id,
                "event_type": event_type,
                "payload": payload,
                "metadata": metadata,
            }
            with self._lock, self._path.open("a") as file:
                file.write(json.dumps(heard) + "\n")

        return write


def listen(url: str, path: Path) -> None:
    """Until its standard input ends."""
    conf = cfg.ConfigOpts()
    conf([], project="consumer", default_config_files=[])
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    listener = oslo_messaging.get_notification_listener(
        transport, [oslo_messaging.Target(topic=TOPIC)], [Writer(path)], executor="threading"
    )
    # One at a time: what one publisher says is written in its order.
    listener.start(override_pool_size=1)
    print("ready", flush=True)
    sys.stdin.read()
    listener.stop()
    listener.wait()
    transport.cleanup()


class Consumer:
    """What it heard since it began to listen."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def text(self) -> str:
        return self._path.read_text() if self._path.exists() else ""

    def heard(self, server: Any, *types: str) -> list[dict[str, Any]]:
        """The notifications about a server whose types begin so, in the order in which they came."""
        found = [json.loads(line) for line in self.text.splitlines(keepends=True) if line.endswith("\n")]
        return [
            each
            for each in found
            if each["event_type"].startswith(types) and server.id in json.dumps(each["payload"]["nova_object.data"])
        ]

    def wait_for(self, server: Any, event_type: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while True:
            for found in self.heard(server, event_type):
                return found
            types = [each["event_type"] for each in self.heard(server, "")]
            assert time.monotonic() < end, f"no {event_type} came in time; heard: {types}"
            time.sleep(0.05)


@contextmanager
def consumer(url: str, path: Path) -> Iterator[Consumer]:
    """Listens on a message queue while this is open."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, url, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    killer = threading.Timer(START_SECONDS, process.kill)
    killer.start()
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n", "the consumer did not start"
        killer.cancel()
        yield Consumer(path)
    finally:
        killer.cancel()
        process.communicate(timeout=60)


def check_move(heard: list[dict[str, Any]], source: str, target: str, conductors: Collection[str]) -> None:
    """The notifications about a server that was built, moved to another cell and confirmed: Nova's, in its order."""
    for each in heard:
        check_format(each)
    assert {each["event_type"] for each in heard} >= {
        "instance.create.end",
        "instance.exists",
        "scheduler.select_destinations.end",
    }
    reported = [
        (each["event_type"], each["publisher_id"])
        for each in heard
        if each["event_type"].startswith(("instance.resize", "compute_task"))
    ]
    assert reported[:-2] == [
        ("instance.resize_prep.start", f"nova-compute:{target}"),
        ("instance.resize_prep.end", f"nova-compute:{target}"),
        ("instance.resize.start", f"nova-compute:{source}"),
        ("instance.resize.end", f"nova-compute:{source}"),
        ("instance.resize_finish.start", f"nova-compute:{target}"),
        ("instance.resize_finish.end", f"nova-compute:{target}"),
    ]
    assert [event for event, _publisher in reported[-2:]] == [
        "instance.resize_confirm.start",
        "instance.resize_confirm.end",
    ]
    # As in Nova: of a confirm across cells a conductor notifies, as if it were a compute.
    publishers = {publisher for _event, publisher in reported[-2:]}
    assert publishers <= {f"nova-compute:{name}" for name in conductors}, publishers
    for each in heard:
        assert not {"auth_token", "service_catalog", "password"} & each["context"].keys()
        if each["event_type"].startswith("instance.resize"):
            assert each["payload"]["nova_object.name"].startswith("InstanceAction")
            assert each["priority"] == "info"


def secrets_of(cloud: Any) -> set[str]:
    """Of a `Deployment`: users' tokens and passwords, and what is in its files of configuration."""
    found = {connection.auth_token for connection in (cloud.member, cloud.admin)}
    found |= {connection.config.auth["password"] for connection in (cloud.member, cloud.admin)}
    for file in cloud.directory.glob("*.conf"):
        found |= set(re.findall(r"^password *= *(.*)$", file.read_text(), re.MULTILINE))
        found |= set(re.findall(r"://[^:/]+:([^@/]+)@", file.read_text()))
    return found


def check_format(heard: dict[str, Any]) -> None:
    """The envelope and every object in the payload, as consumers of Nova's versioned notifications read them."""
    assert PUBLISHER.match(heard["publisher_id"]), heard["publisher_id"]
    assert EVENT.match(heard["event_type"]), heard["event_type"]
    assert heard["metadata"].keys() >= {"message_id", "timestamp"}
    objects = list(_objects(heard["payload"]))
    assert objects[0] is heard["payload"], "the payload itself is a versioned object"
    for found in objects:
        assert found["nova_object.namespace"] == "nova"
        assert found["nova_object.name"].endswith("Payload"), found["nova_object.name"]
        assert VERSION.match(found["nova_object.version"])
        assert isinstance(found["nova_object.data"], dict)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if any(key.startswith("nova_object.") for key in value):
            assert value.keys() >= {f"nova_object.{part}" for part in ("name", "namespace", "version", "data")}
            yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)


if __name__ == "__main__":
    listen(sys.argv[1], Path(sys.argv[2]))
