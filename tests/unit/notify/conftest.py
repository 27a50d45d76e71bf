"""A notifier whose messages are heard by a real listener over an in-memory message queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, KeyPair
from causeway.model.network import FixedIp, Vif
from causeway.model.states import PowerState, VmState
from causeway.notify.notifier import Notifier

BUS = "causeway-memory://notifications-of-tests"
TOPICS = ("versioned_notifications", "one", "two")
VOLUME, PORT, SERVER = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "123")


@dataclass(frozen=True)
class Heard:
    priority: str
    context: dict[str, Any]
    publisher_id: str
    event_type: str
    payload: dict[str, Any]

    @property
    def name(self) -> tuple[str, str]:
        return self.payload["nova_object.name"], self.payload["nova_object.version"]

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.payload["nova_object.data"]
        return data


class Ear:
    """A notification endpoint that keeps what it hears."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heard: list[Heard] = []

    def info(self, context: Any, publisher: str, event: str, payload: Any, _metadata: Any) -> None:
        self._keep(Heard("info", context, publisher, event, payload))

    def error(self, context: Any, publisher: str, event: str, payload: Any, _metadata: Any) -> None:
        self._keep(Heard("error", context, publisher, event, payload))

    def _keep(self, heard: Heard) -> None:
        with self._changed:
            self._heard.append(heard)
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._heard.clear()

    def all(self, count: int) -> list[Heard]:
        """What was heard, once it is ``count`` messages."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._heard) >= count, 60), self._heard
            return list(self._heard)


def notifying_config(url: str, **notifications: Any) -> cfg.ConfigOpts:
    conf = new_config(transport_url=url, notifications={"notification_format": "versioned", **notifications})
    # Registers the library's options.
    oslo_messaging.Notifier(oslo_messaging.get_notification_transport(conf, url=url))
    conf.set_override("driver", ["messagingv2"], group="oslo_messaging_notifications")
    return conf


Listening = Callable[..., tuple[Notifier, Ear]]


@pytest.fixture(scope="session")
def bus() -> Iterator[Ear]:
    """One listener for all tests: stopping one takes its library a second."""
    transport = oslo_messaging.get_notification_transport(notifying_config(BUS), url=BUS)
    ear = Ear()
    listener = oslo_messaging.get_notification_listener(
        transport, [oslo_messaging.Target(topic=topic) for topic in TOPICS], [ear], executor="threading"
    )
    listener.start()
    yield ear
    listener.stop()
    listener.wait()
    transport.cleanup()


@pytest.fixture
def listening(bus: Ear) -> Iterator[Listening]:
    """Makes a notifier and gives the ear that hears it; keyword arguments are options of [notifications]."""
    made: list[Notifier] = []

    def make(block_devices_of: Any = None, **notifications: Any) -> tuple[Notifier, Ear]:
        conf = notifying_config(BUS, **notifications)
        made.append(Notifier(BUS, "nova-api:controller", conf, block_devices_of=block_devices_of))
        return made[-1], bus

    bus.clear()
    yield make
    for notifier in made:
        notifier.close()


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(
        user_id="asker", project_id="askers", auth_token="secret-token", request_id="req-1", overwrite=False
    )


@pytest.fixture
def flavor() -> Flavor:
    return Flavor("1", "gen1.small", vcpus=1, memory_mb=128, root_gb=1, extra_specs={"a": "b"}, description="small")


@pytest.fixture
def instance(flavor: Flavor) -> Instance:
    return Instance(
        uuid=SERVER,
        project_id="owners",
        user_id="owner",
        display_name="server",
        hostname="server",
        flavor=flavor,
        host="host1",
        node="node1",
        vm_state=VmState.ACTIVE,
        power_state=PowerState.RUNNING,
        tags=["t"],
        keypairs=[KeyPair("key", "owner", "ssh-rsa AAAA", "aa:bb")],
        network_info=[
            Vif(
                PORT,
                "fa:16:3e:00:00:01",
                "net",
                "demo-net",
                [FixedIp("10.0.0.5", "sub"), FixedIp("fd00::5", "sub6", 6)],
            )
        ],
    )


@pytest.fixture
def block_devices() -> list[BlockDevice]:
    return [
        BlockDevice("1", SERVER, "image", "local", boot_index=0, device_name="/dev/vda"),
        BlockDevice("2", SERVER, "volume", "volume", device_name="/dev/vdb", volume_id=VOLUME, tag="data"),
    ]
