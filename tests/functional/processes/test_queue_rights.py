"""Each compute has an account in RabbitMQ that is bound to it, and a key: servers move, and what concerns others is refused."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copy
from typing import Any

import amqp
import oslo_messaging
import pytest
from click.testing import CliRunner

from causeway.cli.main import cli
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.model.instance import Instance
from causeway.rpc import signatures
from causeway.rpc.endpoint import to_wire
from causeway.rpc.signatures import SignedContext
from causeway.store.cell import instances
from causeway.store.database import Database
from tests.functional.processes.deployment import OPTIONS, Deployment
from tests.functional.processes.own_process import CAUSEWAY
from tests.functional.processes.rabbit import SERVER, Broker, why_not

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(why_not() is not None or not SERVER.exists(), reason="needs a RabbitMQ of its own"),
]

CELLS = {"cell1": ["host1", "host2"], "cell2": ["host3"]}


def rights(host: str, cell: str, account: str) -> Any:
    arguments = ["manage", "queue", "rights", host, "--account", account, "--virtual-host", cell, "--json"]
    return json.loads(subprocess.run([CAUSEWAY, *arguments], capture_output=True, check=True, timeout=60).stdout)


class Keys:
    """Of the control plane and of each host. Hosts trust the control plane only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for kind, name in [("control", "controller"), *(("host", host) for hosts in CELLS.values() for host in hosts)]:
            made = CliRunner().invoke(cli, ["manage", "queue", "make-key", kind, name, f"--directory={directory}"])
            assert made.exit_code == 0, made.output
        of_hosts = directory / "of-hosts/control"
        of_hosts.mkdir(parents=True)
        copy(directory / "trusted/control/controller.pem", of_hosts)

    def of(self, owner: str) -> Path:
        return self._directory / "private" / ("control" if owner == "controller" else "hosts") / f"{owner}.pem"

    def options(self, owner: str) -> dict[str, str]:
        trusted = self._directory / ("trusted" if owner == "controller" else "of-hosts")
        return {"private_key": str(self.of(owner)), "trusted_keys": str(trusted), "required": "true"}


class BoundHosts(Deployment):
    """``accounts``: host -> the URL of its account."""

    accounts: dict[str, str]
    keys: Keys

    def hypervisor(self, host: str) -> dict[str, dict[str, str]]:
        return {
            "rpc_signatures": self.keys.options(host),
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
        keys = Keys(directory / "keys")
        options = {**OPTIONS, "rpc_signatures": keys.options("controller")}
        deployment = BoundHosts(directory, broker.url, cells=CELLS, options=options)
        deployment.accounts, deployment.keys = accounts, keys
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
    assert not [name for name, process in cloud.processes.items() if "was refused by" in process.log]


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
# Answers take this way, and RabbitMQ looks at no routing key there: signatures are for that.
NOT_BOUND: dict[str, Callable[[Any], object]] = {
    "order another host by the default exchange": lambda on: publish(on, "", "nobody"),
}


def publish(channel: Any, exchange: str, key: str) -> None:
    channel.confirm_select()
    channel.basic_publish_confirm(amqp.Message("{}"), exchange, key)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_an_account_of_a_host_may_not_do_more(running: BoundHosts, channel: Any, what: str) -> None:  # noqa: ARG001
    with pytest.raises(amqp.exceptions.AccessRefused):
        FORBIDDEN[what](channel)


@pytest.mark.parametrize("what", [*ALLOWED, *NOT_BOUND])
def test_an_account_of_a_host_may_do_what_its_host_needs(channel: Any, what: str) -> None:
    (ALLOWED | NOT_BOUND)[what](channel)


def test_a_host_cannot_connect_to_another_cell(running: BoundHosts) -> None:
    address = running.accounts["host1"].rpartition("@")[2]
    for other in ("cell2", "cloud"):
        with (
            pytest.raises(amqp.exceptions.NotAllowed),
            amqp.Connection(address, userid="account-host1", password="secret", virtual_host=other),
        ):
            pass


def test_the_status_of_a_cloud_that_requires_signatures_is_success(cloud: BoundHosts) -> None:
    assert cloud.wrong() == {}
    assert cloud.status()["signed messages"] == ("success", "required; trusted: 3 hosts, 1 of the control plane")


@dataclass
class Forger:
    """Who owns host1: its account, its key and the program. Sends past RabbitMQ's rights, and reads the answer."""

    channel: Any
    keys: Keys

    def send(
        self, queue: str, method: str, arguments: dict[str, Any], key: str | None, server: str | None = None
    ) -> dict[str, Any]:
        """Publishes a call to a queue by its name. ``key``: of whom it is that signs it, if somebody does."""
        answers = f"reply_host1:compute:{uuid.uuid4().int % 10**9}"
        self.channel.queue_declare(answers, auto_delete=True)
        target = oslo_messaging.Target(topic=queue.partition(".")[0], server=server, version="1.0")
        context: Any = admin_context()
        if key is not None:
            signing = signatures.from_options(new_config(rpc_signatures={"private_key": str(self.keys.of(key))}))
            assert signing is not None
            context = SignedContext(signing, context, target, method, arguments)
        message = {"method": method, "args": arguments, "version": "1.0", "_unique_id": uuid.uuid4().hex}
        message |= {"_msg_id": uuid.uuid4().hex, "_reply_q": answers}
        message |= {f"_context_{name}": value for name, value in context.to_dict().items()}
        body = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(message)})
        got: list[Any] = []
        self.channel.basic_consume(answers, callback=got.append, no_ack=True)
        wrapped = amqp.Message(body, content_type="application/json", content_encoding="utf-8")
        self.channel.basic_publish(wrapped, "", queue)
        while not got:
            self.channel.connection.drain_events(timeout=60)
        answer: dict[str, Any] = json.loads(json.loads(got[0].body)["oslo.message"])["result"]
        return answer


@pytest.fixture
def forger(running: BoundHosts, channel: Any) -> Forger:
    return Forger(channel, running.keys)


def record(cloud: BoundHosts, server: Any) -> Instance:
    database = Database(cloud.databases["cell1"], "cell1")
    try:
        return instances.get(database, server.id)
    finally:
        database.close()


@pytest.fixture
def victim(cloud: BoundHosts) -> Any:
    """A server on host2."""
    server = cloud.boot()
    if cloud.show(server).compute_host != "host2":
        move(cloud, server, "host2")
        cloud.member.compute.confirm_server_resize(server.id)
        cloud.wait(server, "ACTIVE")
        cloud.settle()
    return server


def test_orders_of_a_host_to_another_one_are_refused(cloud: BoundHosts, victim: Any, forger: Forger) -> None:
    order = {"instance": to_wire(record(cloud, victim))}
    for key, server in ((None, None), ("host1", "host2"), ("host1", None), ("host2", "host2")):
        answer = forger.send("compute.host2", "power_off_instance", order, key, server)
        assert answer["error"]["code"] == "sender_not_trusted", (key, server)
    # An order of the control plane to host1 that is passed on.
    answer = forger.send("compute.host2", "power_off_instance", order, "controller", "host1")
    assert answer["error"]["code"] == "sender_not_trusted"
    assert cloud.running_on(victim) == ["host2"]
    assert cloud.processes["host2"].log.count("'power_off_instance' was refused by compute on host2") == 5
    # It would have been carried out: signatures are what stopped it.
    assert "result" in forger.send("compute.host2", "power_off_instance", order, "controller", "host2")
    assert cloud.running_on(victim) == []


REPORTS: dict[str, dict[str, Any]] = {
    "missed_orders": {},
    "orders_carried_out": {"ids": []},
    "recorded_claims": {"instance_uuids": []},
}


@pytest.mark.parametrize("method", REPORTS)
def test_a_host_reports_in_no_other_name(cloud: BoundHosts, forger: Forger, method: str) -> None:  # noqa: ARG001
    for host, key, refused in (
        ("host1", None, True),
        ("host2", None, True),
        ("host2", "host1", True),
        ("host1", "host1", False),
    ):
        answer = forger.send("cell_conductor", method, {"host": host, **REPORTS[method]}, key)
        assert (answer.get("error", {}).get("code") == "sender_not_trusted") is refused, (host, key)


def test_a_host_calls_no_super_conductor(cloud: BoundHosts, forger: Forger) -> None:  # noqa: ARG001
    answer = forger.send("super_conductor", "missed_orders", {"host": "host1"}, "host1")
    assert answer["error"]["code"] == "sender_not_trusted"
