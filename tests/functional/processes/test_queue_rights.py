"""Each compute has an account in RabbitMQ that is bound to it: servers move, and what concerns others is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import amqp
import pytest

from tests.functional.processes.deployment import CAUSEWAY, Deployment
from tests.functional.processes.rabbit import SERVER, Broker, why_not

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(why_not() is not None or not SERVER.exists(), reason="needs a RabbitMQ of its own"),
]

CELLS = {"cell1": ["host1", "host2"], "cell2": ["host3"]}


def rights(host: str, cell: str, account: str) -> Any:
    arguments = ["manage", "queue", "rights", host, "--account", account, "--virtual-host", cell, "--json"]
    return json.loads(subprocess.run([CAUSEWAY, *arguments], capture_output=True, check=True, timeout=60).stdout)


class BoundHosts(Deployment):
    """``accounts``: host -> the URL of its account."""

    accounts: dict[str, str]

    def hypervisor(self, host: str) -> dict[str, dict[str, str]]:
        return {
            "DEFAULT": {"transport_url": f"{self.accounts[host]}/{self.hosts[host]}"},
            "oslo_messaging_rabbit": {"use_queue_manager": "true", "hostname": host, "processname": "compute"},
        }


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoundHosts]:
    directory = tmp_path_factory.mktemp("cloud")
    broker = Broker(directory / "rabbit")
    accounts = {
        host: broker.add_account(f"account-{host}", "secret", rights(host, cell, f"account-{host}"))
        for cell, hosts in CELLS.items()
        for host in hosts
    }
    try:
        broker.start()
        deployment = BoundHosts(directory, broker.url, cells=CELLS)
        deployment.accounts = accounts
        try:
            deployment.start()
            yield deployment
        finally:
            deployment.stop()
    finally:
        broker.stop()


@pytest.fixture
def cloud(running: BoundHosts) -> Iterator[BoundHosts]:
    yield running
    running.delete_servers()


@pytest.fixture
def channel(running: BoundHosts) -> Iterator[Any]:
    """Of the account of host1, in its cell."""
    address = running.accounts["host1"].rpartition("@")[2]
    with amqp.Connection(address, userid="account-host1", password="secret", virtual_host="cell1") as connection:
        yield connection.channel()


def move(cloud: BoundHosts, server: Any, host: str) -> None:
    cloud.admin.compute.migrate_server(server.id, host=host)
    cloud.wait(server, "VERIFY_RESIZE")
    assert cloud.running_on(server) == [host]


def test_servers_move_inside_a_cell_and_across_cells(cloud: BoundHosts) -> None:
    server = cloud.boot()
    # Wherever it was built: the second move is inside a cell, the third across cells.
    for host in ("host1", "host2", "host3"):
        if cloud.show(server).compute_host != host:
            move(cloud, server, host)
            cloud.member.compute.confirm_server_resize(server.id)
            cloud.wait(server, "ACTIVE")
            cloud.settle()
    move(cloud, server, "host1")
    cloud.member.compute.revert_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.running_on(server) == ["host3"]
    assert not [name for name in cloud.hosts if "ACCESS_REFUSED" in cloud.processes[name].log]


FORBIDDEN: dict[str, Callable[[Any], object]] = {
    "take another host's orders": lambda on: on.basic_consume("compute.host2"),
    "look at another host's orders": lambda on: on.basic_get("compute.host2"),
    "take another host's answers": lambda on: on.basic_get("reply_host2:compute:1"),
    "take what is meant for conductors": lambda on: on.basic_get("cell_conductor"),
    "discard another host's orders": lambda on: on.queue_purge("compute.host2"),
    "delete another host's queue": lambda on: on.queue_delete("compute.host2"),
    "make a queue in another host's name": lambda on: on.queue_declare("reply_host2:compute:9"),
    "get copies of another host's orders": lambda on: on.queue_bind("compute.host1", "openstack", "compute.host2"),
    "get copies of everything": lambda on: on.queue_bind("compute.host1", "openstack", "#"),
    "get copies of what conductors get": lambda on: on.queue_bind("compute.host1", "openstack", "cell_conductor"),
    "trace": lambda on: on.queue_bind("compute.host1", "amq.rabbitmq.trace", "#"),
    "order another host": lambda on: publish(on, "openstack", "compute.host2"),
    "order any host": lambda on: publish(on, "openstack", "compute"),
    "order all hosts": lambda on: publish(on, "compute_fanout", ""),
    "call a super conductor": lambda on: publish(on, "openstack", "super_conductor"),
}
ALLOWED: dict[str, Callable[[Any], object]] = {
    "call its conductor": lambda on: publish(on, "openstack", "cell_conductor"),
    "make its own queue": lambda on: on.queue_declare("reply_host1:compute:99", auto_delete=True),
}
# Known, and said in SECURITY.md: answers take this way, and RabbitMQ looks at no routing key there.
NOT_BOUND: dict[str, Callable[[Any], object]] = {
    "order another host by the default exchange": lambda on: publish(on, "", "nobody"),
}


def publish(channel: Any, exchange: str, key: str) -> None:
    channel.confirm_select()
    channel.basic_publish_confirm(amqp.Message("{}"), exchange, key)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_host_cannot(running: BoundHosts, channel: Any, what: str) -> None:  # noqa: ARG001
    with pytest.raises(amqp.exceptions.AccessRefused):
        FORBIDDEN[what](channel)


@pytest.mark.parametrize("what", [*ALLOWED, *NOT_BOUND])
def test_a_host_can(channel: Any, what: str) -> None:
    (ALLOWED | NOT_BOUND)[what](channel)


def test_a_host_cannot_connect_to_another_cell(running: BoundHosts) -> None:
    address = running.accounts["host1"].rpartition("@")[2]
    for other in ("cell2", "cloud"):
        with (
            pytest.raises(amqp.exceptions.NotAllowed),
            amqp.Connection(address, userid="account-host1", password="secret", virtual_host=other),
        ):
            pass
