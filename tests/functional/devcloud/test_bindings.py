"""Port bindings: one port prepared on two hosts, activated on one, and the events that go with it."""

import queue
import threading
from typing import Any
from uuid import uuid4

import pytest

HOST1, HOST2 = "cell1-host1", "cell2-host1"
EVENT_SECONDS = 10


@pytest.fixture(scope="module")
def network(shared: Any) -> str:
    network = shared.ok("POST", "/network/v2.0/networks", {"network": {"name": "n"}}, "demo")["network"]["id"]
    subnet = {"network_id": network, "ip_version": 4, "cidr": "10.9.0.0/24"}
    shared.ok("POST", "/network/v2.0/subnets", {"subnet": subnet}, "demo")
    return str(network)


def make_port(devcloud: Any, network: str, **more: Any) -> dict[str, Any]:
    body = {"network_id": network, "project_id": devcloud.project("demo"), **more}
    port: dict[str, Any] = devcloud.ok("POST", "/network/v2.0/ports", {"port": body})["port"]
    return port


def make_server_port(devcloud: Any, network: str, host: str = HOST1) -> dict[str, Any]:
    """A port of a server on a host, plugged: its event was taken."""
    owner = {"device_id": str(uuid4()), "device_owner": "compute:nova"}
    port = make_port(devcloud, network, **owner, **{"binding:host_id": host})
    if host:
        assert event_of(devcloud, port)["name"] == "network-vif-plugged"
    return port


def plugged_until_now(devcloud: Any, network: str) -> None:
    """What was to be plugged before has been: the one thread that plugs has come to a later port."""
    make_server_port(devcloud, network)


def event_of(devcloud: Any, port: dict[str, Any]) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = devcloud.compute.events.get(timeout=EVENT_SECONDS)
        if event["tag"] == port["id"]:
            return event


def show(devcloud: Any, port: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = devcloud.ok("GET", f"/network/v2.0/ports/{port['id']}")["port"]
    return shown


def bindings(devcloud: Any, port: dict[str, Any]) -> dict[str, tuple[str, str]]:
    rows = devcloud.ok("GET", f"/network/v2.0/ports/{port['id']}/bindings")["bindings"]
    return {row["host"]: (row["status"], row["vif_type"]) for row in rows}


def test_a_port_without_host_is_unbound_and_down(devcloud: Any, network: str) -> None:
    port = make_port(devcloud, network)
    assert (port["status"], port["binding:vif_type"], port["binding:host_id"]) == ("DOWN", "unbound", "")
    assert bindings(devcloud, port) == {}


def test_binding_a_servers_port_plugs_it_and_notifies_compute(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network, host="")
    path = f"/network/v2.0/ports/{port['id']}"
    bound = devcloud.ok("PUT", path, {"port": {"binding:host_id": HOST1}})["port"]
    assert bound["binding:vif_type"] == "bridge"
    assert bound["binding:vif_details"]["bridge_name"] == "brq" + network[:11]
    event = event_of(devcloud, port)
    assert event["path"] == "/v2.1/os-server-external-events"
    assert (event["name"], event["status"]) == ("network-vif-plugged", "completed")
    assert event["server_uuid"] == port["device_id"]
    assert devcloud.cloud.tokens.check(event["token"]).is_service
    assert show(devcloud, port)["status"] == "ACTIVE"


def test_an_update_that_changes_nothing_makes_no_event(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    devcloud.ok("PUT", f"/network/v2.0/ports/{port['id']}", {"port": {"binding:host_id": HOST1, "name": "x"}})
    devcloud.ok("DELETE", f"/network/v2.0/ports/{port['id']}")
    assert event_of(devcloud, port)["name"] == "network-vif-deleted"


def test_a_second_binding_is_inactive_until_it_is_activated(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    path = f"/network/v2.0/ports/{port['id']}/bindings"
    profile = {"migrating_to": HOST2}
    made = devcloud.ok("POST", path, {"binding": {"host": HOST2, "vnic_type": "normal", "profile": profile}})["binding"]
    assert (made["status"], made["vif_type"], made["profile"]) == ("INACTIVE", "bridge", profile)
    assert show(devcloud, port)["binding:host_id"] == HOST1

    assert devcloud.ok("PUT", f"{path}/{HOST2}/activate")["status"] == "ACTIVE"
    assert bindings(devcloud, port) == {HOST1: ("INACTIVE", "unbound"), HOST2: ("ACTIVE", "bridge")}
    assert event_of(devcloud, port)["name"] == "network-vif-plugged"
    shown = show(devcloud, port)
    assert (shown["binding:host_id"], shown["status"], shown["binding:profile"]) == (HOST2, "ACTIVE", profile)

    assert devcloud.call("DELETE", f"{path}/{HOST1}").status_code == 204
    assert bindings(devcloud, port) == {HOST2: ("ACTIVE", "bridge")}


def test_activation_takes_the_port_down_until_the_new_host_has_it(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    path = f"/network/v2.0/ports/{port['id']}/bindings"
    devcloud.ok("POST", path, {"binding": {"host": HOST2}})
    devcloud.cloud.unpluggable_hosts = {HOST2}
    devcloud.ok("PUT", f"{path}/{HOST2}/activate")
    plugged_until_now(devcloud, network)
    assert show(devcloud, port)["status"] == "DOWN"
    devcloud.cloud.unpluggable_hosts = set()
    devcloud.ok("PUT", f"{path}/{HOST1}/activate")
    assert event_of(devcloud, port)["name"] == "network-vif-plugged"
    assert show(devcloud, port)["status"] == "ACTIVE"


@pytest.mark.expects_errors("is not a mapping of switches")
def test_switches_in_a_file_are_read_again(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    path = f"/network/v2.0/ports/{port['id']}/bindings"
    devcloud.ok("POST", path, {"binding": {"host": HOST2}})
    file = devcloud.cloud.config.state_dir / "devcloud-switches.yaml"
    file.write_text(f"unpluggable_hosts: [{HOST2}]\n")
    assert devcloud.cloud.unpluggable_hosts == {HOST2}
    devcloud.ok("PUT", f"{path}/{HOST2}/activate")
    plugged_until_now(devcloud, network)
    assert show(devcloud, port)["status"] == "DOWN"
    file.write_text("plug_delay: 0.01\n")
    assert (devcloud.cloud.unpluggable_hosts, devcloud.cloud.plug_delay) == (set(), 0.01)
    devcloud.ok("PUT", f"{path}/{HOST1}/activate")
    assert event_of(devcloud, port)["name"] == "network-vif-plugged"
    assert show(devcloud, port)["status"] == "ACTIVE"
    for ignored in ("no mapping\n", "{\n"):
        file.write_text(ignored)
        assert devcloud.cloud.unpluggable_hosts == set() and devcloud.cloud.plug_delay == 0.0
    file.write_text("{plug_delay: 3, port_resource_request_groups: false}\n")
    assert (devcloud.cloud.plug_delay, devcloud.cloud.port_resource_request_groups) == (3.0, False)
    file.unlink()
    assert (devcloud.cloud.plug_delay, devcloud.cloud.port_resource_request_groups) == (0.0, True)


@pytest.mark.parametrize(
    ("method", "tail", "body", "status"),
    [
        ("POST", "", {"binding": {"host": HOST1}}, 409),
        ("POST", "", {"binding": {"host": "nowhere"}}, 400),
        ("POST", "", {"binding": {}}, 400),
        ("POST", "", {"binding": {"host": HOST2, "colour": "red"}}, 400),
        ("POST", "", [1], 400),
        ("PUT", f"/{HOST1}/activate", None, 409),
        ("PUT", f"/{HOST2}/activate", None, 404),
        ("GET", f"/{HOST2}", None, 404),
        ("DELETE", f"/{HOST2}", None, 404),
        ("DELETE", f"/{HOST1}", None, 204),
    ],
)
def test_bindings_answer_with_neutrons_codes(
    devcloud: Any, network: str, method: str, tail: str, body: Any, status: int
) -> None:
    port = make_server_port(devcloud, network)
    reply = devcloud.call(method, f"/network/v2.0/ports/{port['id']}/bindings{tail}", body)
    assert reply.status_code == status
    if status >= 400:
        assert set(reply.json()["NeutronError"]) == {"type", "message", "detail"}


def test_a_member_has_no_say_in_bindings(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    path = f"/network/v2.0/ports/{port['id']}"
    assert devcloud.call("GET", path + "/bindings", user="demo").status_code == 403
    assert devcloud.call("PUT", path, {"port": {"binding:host_id": HOST2}}, user="demo").status_code == 403
    assert devcloud.call("DELETE", path, user="demo").status_code == 403
    assert "binding:host_id" not in devcloud.ok("GET", path, user="demo")["port"]


def test_a_port_update_to_an_unknown_host_fails_the_binding(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    path = f"/network/v2.0/ports/{port['id']}"
    failed = devcloud.ok("PUT", path, {"port": {"binding:host_id": "nowhere"}})["port"]
    assert (failed["binding:vif_type"], failed["status"]) == ("binding_failed", "DOWN")
    devcloud.ok("PUT", path, {"port": {"binding:host_id": HOST1}})
    assert event_of(devcloud, port)["name"] == "network-vif-plugged"


def test_an_event_that_compute_could_not_take_is_posted_again(devcloud: Any, network: str) -> None:
    devcloud.compute.failures = 1
    make_server_port(devcloud, network)


def test_plugging_can_be_delayed(devcloud: Any, network: str) -> None:
    devcloud.cloud.plug_delay = 3600.0
    port = make_server_port(devcloud, network, host="")
    devcloud.ok("PUT", f"/network/v2.0/ports/{port['id']}", {"port": {"binding:host_id": HOST1}})
    devcloud.cloud.plug_delay = 0.0
    plugged_until_now(devcloud, network)
    assert show(devcloud, port)["status"] == "DOWN"


def test_changed_addresses_and_a_deleted_port_are_notified(devcloud: Any, network: str) -> None:
    port = make_server_port(devcloud, network)
    path = f"/network/v2.0/ports/{port['id']}"
    changed = devcloud.ok("PUT", path, {"port": {"fixed_ips": [{"ip_address": "10.9.0.200"}]}})["port"]
    assert [each["ip_address"] for each in changed["fixed_ips"]] == ["10.9.0.200"]
    assert event_of(devcloud, port)["name"] == "network-changed"
    devcloud.ok("DELETE", path)
    assert event_of(devcloud, port)["name"] == "network-vif-deleted"


def test_the_topology_is_there_when_the_hook_is_called(devcloud: Any, network: str) -> None:
    seen: queue.Queue[Any] = queue.Queue()
    threads: set[str] = set()

    def hook() -> None:
        threads.add(threading.current_thread().name)
        seen.put(devcloud.cloud.network_topology())

    devcloud.cloud.on_ports_changed = hook
    port = make_port(devcloud, network, **{"binding:host_id": HOST1})
    (found,) = [each for each in seen.get(timeout=EVENT_SECONDS) if each.id == network]
    assert found.segmentation_id >= 1001
    assert found.subnets[0].cidr == "10.9.0.0/24"
    (wired,) = [each for each in found.ports if each.id == port["id"]]
    assert (wired.mac, wired.host) == (port["mac_address"], HOST1)
    assert threads == {"devcloud-plugger"}
