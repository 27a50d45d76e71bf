"""What Libcloud's driver for OpenStack offers, on the cloud in ``OS_CLIENT_CONFIG_FILE``; run with Libcloud's interpreter.

The tests of a server share it; each leaves it running, at the size that it had.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.providers import get_driver
from libcloud.compute.types import KeyPairDoesNotExistError, NodeState, Provider, StorageVolumeState

# Seconds, and how often the cloud is asked: Libcloud itself waits for builds only.
PATIENCE, EVERY = 120.0, 0.3
PRIVATE, PUBLIC, IMAGE = "private", "public", "cirros-0-uec"


@pytest.fixture(scope="module")
def driver() -> Any:
    clouds = yaml.safe_load(Path(os.environ["OS_CLIENT_CONFIG_FILE"]).read_text())["clouds"]
    auth = clouds[os.environ["OS_CLOUD"]]["auth"]
    return get_driver(Provider.OPENSTACK)(
        auth["username"],
        auth["password"],
        api_version="2.2",
        ex_force_auth_version="3.x_password",
        ex_force_auth_url=auth["auth_url"].removesuffix("/v3"),
        ex_tenant_name=auth["project_name"],
        ex_domain_name="Default",
        ex_force_service_region="RegionOne",
    )


def wait_for(what: Callable[[], Any]) -> Any:
    """What is there when it is there."""
    ends = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(EVERY)
    return found


def status(driver: Any, node: Any, wanted: str) -> Any:
    """The node when it is in this ``vm_state``, and nothing is done to it."""

    def seen() -> Any:
        found = driver.ex_get_node_details(node.id)
        assert found.extra["vm_state"] != "error", found.extra
        return found if found.extra["vm_state"] == wanted and found.extra["task_state"] is None else None

    return wait_for(seen)


def size(driver: Any, name: str) -> Any:
    return next(one for one in driver.list_sizes() if one.name == name)


def network(driver: Any, name: str) -> Any:
    return next(one for one in driver.ex_list_networks() if one.name == name)


@contextmanager
def a_server(driver: Any, **more: Any) -> Iterator[Any]:
    image = next(one for one in driver.list_images() if one.name == IMAGE)
    name = f"node-{uuid.uuid4().hex[:8]}"
    given = {"size": size(driver, "m1.tiny"), "networks": [network(driver, PRIVATE)]} | more
    node = driver.create_node(name=name, image=image, **given)
    try:
        yield status(driver, node, "active")
    finally:
        driver.destroy_node(node)
        wait_for(lambda: driver.ex_get_node_details(node.id) is None)


@pytest.fixture(scope="module")
def server(driver: Any) -> Iterator[Any]:
    with a_server(driver) as node:
        yield node


@contextmanager
def a_volume(driver: Any, **more: Any) -> Iterator[Any]:
    volume = driver.create_volume(1, f"volume-{uuid.uuid4().hex[:8]}", **more)
    try:
        yield available(driver, volume)
    finally:
        available(driver, volume)
        assert driver.destroy_volume(volume)
        wait_for(lambda: volume.id not in {one.id for one in driver.list_volumes()})


def in_state(driver: Any, volume: Any, state: str) -> Any:
    def seen() -> Any:
        found = driver.ex_get_volume(volume.id)
        return found if found.state == state else None

    return wait_for(seen)


def available(driver: Any, volume: Any) -> Any:
    return in_state(driver, volume, StorageVolumeState.AVAILABLE)


def test_sizes_are_listed_with_what_they_have(driver: Any) -> None:
    small = size(driver, "m1.small")
    assert (small.vcpus, small.ram, small.disk) == (1, 2048, 20)
    assert driver.ex_get_size(small.id).ram == 2048
    assert driver.ex_get_size_extra_specs(small.id) == {}


def test_images_are_listed_and_found(driver: Any) -> None:
    image = next(one for one in driver.list_images() if one.name == IMAGE)
    assert driver.get_image(image.id).name == IMAGE


def test_there_is_a_location(driver: Any) -> None:
    assert len(driver.list_locations()) == 1


def test_a_server_is_listed_with_its_address_and_its_size(driver: Any, server: Any) -> None:
    listed = next(node for node in driver.list_nodes() if node.id == server.id)
    assert listed.state == NodeState.RUNNING
    assert listed.private_ips or listed.public_ips
    assert listed.extra["flavorId"] == "m1.tiny"


def test_waiting_until_running_ends(driver: Any, server: Any) -> None:
    ((node, addresses),) = driver.wait_until_running([server], ssh_interface="private_ips", timeout=PATIENCE)
    assert node.id == server.id
    assert addresses


def test_a_server_gets_what_it_was_created_with(driver: Any) -> None:
    key = driver.create_key_pair("of-a-node")
    group = driver.ex_add_server_group("of-a-node", "anti-affinity")
    rules = driver.ex_create_security_group("of-a-node", "SSH")
    wanted = {
        "ex_keyname": key.name, "ex_metadata": {"role": "web"}, "ex_userdata": "#cloud-config\n{}", "ex_config_drive": True,
        "ex_security_groups": [rules], "ex_os_scheduler_hints": {"group": group.id}, "ex_admin_pass": "a-password-1",
    }  # fmt: skip
    with a_server(driver, **wanted) as node:
        assert node.extra["key_name"] == key.name
        assert node.extra["metadata"] == {"role": "web"}
        assert node.extra["config_drive"] in ("True", True)
        assert [one.name for one in driver.ex_get_node_security_groups(node)] == ["of-a-node"]
        assert driver.ex_get_server_group(group.id).members == [node.id]
    assert driver.ex_delete_security_group(rules)
    assert driver.ex_del_server_group(group)
    assert driver.delete_key_pair(key)


def test_a_server_boots_from_a_volume(driver: Any) -> None:
    image = next(one for one in driver.list_images() if one.name == IMAGE)
    disk = {
        "boot_index": 0, "uuid": image.id, "source_type": "image", "destination_type": "volume", "volume_size": 1,
        "delete_on_termination": True,
    }  # fmt: skip
    with a_server(driver, ex_blockdevicemappings=[disk]) as node:
        assert len(node.extra["volumes_attached"]) == 1


def test_a_resize_is_confirmed(driver: Any) -> None:
    with a_server(driver) as node:
        assert driver.ex_resize(node, size(driver, "m1.small"))
        resized = status(driver, node, "resized")
        assert driver.ex_confirm_resize(resized)
        assert status(driver, node, "active").extra["flavorId"] == "m1.small"


def test_a_resize_is_reverted(driver: Any, server: Any) -> None:
    assert driver.ex_resize(server, size(driver, "m1.small"))
    resized = status(driver, server, "resized")
    assert resized.extra["flavorId"] == "m1.small"
    assert driver.ex_revert_resize(resized)
    assert status(driver, server, "active").extra["flavorId"] == "m1.tiny"


def test_a_resize_to_the_same_size_is_refused(driver: Any, server: Any) -> None:
    with pytest.raises(BaseHTTPError) as refused:
        driver.ex_resize(server, size(driver, "m1.tiny"))
    assert refused.value.code == 400


@pytest.mark.parametrize("kind", ["reboot_node", "ex_soft_reboot_node", "ex_hard_reboot_node"])
def test_a_server_is_rebooted(driver: Any, server: Any, kind: str) -> None:
    assert getattr(driver, kind)(server)
    status(driver, server, "active")


@pytest.mark.parametrize(
    ("there", "state", "back"),
    [
        ("stop_node", "stopped", "start_node"),
        ("ex_pause_node", "paused", "ex_unpause_node"),
        ("ex_suspend_node", "suspended", "ex_resume_node"),
        ("ex_rescue", "rescued", "ex_unrescue"),
    ],
)
def test_a_server_goes_into_a_state_and_back(driver: Any, server: Any, there: str, state: str, back: str) -> None:
    assert getattr(driver, there)(server)
    status(driver, server, state)
    assert getattr(driver, back)(server)
    assert status(driver, server, "active").state == NodeState.RUNNING


def test_a_server_is_rebuilt(driver: Any, server: Any) -> None:
    image = next(one for one in driver.list_images() if one.name == IMAGE)
    assert driver.ex_rebuild(server, image)
    status(driver, server, "active")


def test_name_and_metadata_of_a_server_are_changed(driver: Any, server: Any) -> None:
    assert driver.ex_set_server_name(server, "renamed").name == "renamed"
    assert driver.ex_set_metadata(server, {"stage": "test"}) == {"stage": "test"}
    assert driver.ex_get_metadata(server) == {"stage": "test"}
    assert driver.ex_update_node(server, name=server.name).name == server.name


def test_no_password_is_set_in_a_guest_without_an_agent(driver: Any, server: Any) -> None:
    with pytest.raises(BaseHTTPError) as refused:
        driver.ex_set_password(server, "another-password-1")
    assert refused.value.code == 409
    status(driver, server, "active")


def test_console_output_is_shown(driver: Any, server: Any) -> None:
    assert "output" in driver.ex_get_console_output(server)


def test_an_image_of_a_server_is_made_and_deleted(driver: Any, server: Any) -> None:
    made = driver.create_image(server, "of-a-server", metadata={"why": "test"})
    wait_for(lambda: driver.get_image(made.id).extra["status"].upper() == "ACTIVE")
    status(driver, server, "active")
    assert "of-a-server" in {image.name for image in driver.list_images()}
    assert driver.delete_image(made)


def test_an_image_is_changed(driver: Any, server: Any) -> None:
    made = driver.create_image(server, "before")
    wait_for(lambda: driver.get_image(made.id).extra["status"].upper() == "ACTIVE")
    status(driver, server, "active")
    wanted = {"/name": "after", "/visibility": "shared"}
    changed = driver.ex_update_image(
        made.id, [{"op": "replace", "path": path, "value": value} for path, value in wanted.items()]
    )
    assert changed.name == "after"
    assert driver.ex_list_image_members(made.id) == []
    assert driver.delete_image(made)


def test_a_volume_is_attached_and_detached(driver: Any, server: Any) -> None:
    with a_volume(driver) as volume:
        assert driver.attach_volume(server, volume)
        used = in_state(driver, volume, StorageVolumeState.INUSE)
        assert [one["server_id"] for one in used.extra["attachments"]] == [server.id]
        assert [one["id"] for one in driver.ex_get_node_details(server.id).extra["volumes_attached"]] == [volume.id]
        assert driver.detach_volume(used)


def test_a_volume_is_attached_as_a_device(driver: Any, server: Any) -> None:
    with a_volume(driver) as volume:
        assert driver.attach_volume(server, volume, device="/dev/vdf")
        used = in_state(driver, volume, StorageVolumeState.INUSE)
        assert driver.detach_volume(used, ex_node=server)


def test_a_snapshot_of_a_volume_becomes_another_volume(driver: Any) -> None:
    with a_volume(driver) as volume:
        made = driver.create_volume_snapshot(volume, name="snapshot")
        wait_for(lambda: driver.ex_get_snapshot(made.id).extra["status"] == "available")
        assert [one.id for one in driver.list_volume_snapshots(volume)] == [made.id]
        with a_volume(driver, snapshot=made):
            pass
        assert driver.destroy_volume_snapshot(made)
        wait_for(lambda: made.id not in {one.id for one in driver.ex_list_snapshots()})


def test_a_key_pair_is_made_and_deleted(driver: Any) -> None:
    made = driver.create_key_pair("made")
    assert "PRIVATE KEY" in made.private_key
    assert driver.get_key_pair("made").public_key == made.public_key
    assert driver.delete_key_pair(made)
    with pytest.raises(KeyPairDoesNotExistError):
        driver.get_key_pair("made")


def test_an_imported_key_is_shown_as_it_was_sent(driver: Any) -> None:
    sent = Path(__file__).with_name("playbooks").joinpath("key.pub").read_text()
    assert sent.endswith("\n")
    imported = driver.import_key_pair_from_string("imported", sent)
    assert driver.get_key_pair("imported").public_key == sent
    assert "imported" in {one.name for one in driver.list_key_pairs()}
    assert driver.delete_key_pair(imported)


def test_a_server_group_is_made_listed_and_deleted(driver: Any) -> None:
    made = driver.ex_add_server_group("group", "anti-affinity")
    assert made.policy == "anti-affinity"
    assert made.id in {one.id for one in driver.ex_list_server_groups()}
    assert driver.ex_del_server_group(made)


def test_a_security_group_gets_and_loses_a_rule(driver: Any) -> None:
    made = driver.ex_create_security_group("rules", "HTTP")
    rule = driver.ex_create_security_group_rule(made, "tcp", 80, 80, cidr="0.0.0.0/0")
    assert driver.ex_delete_security_group_rule(rule)
    assert made.id in {one.id for one in driver.ex_list_security_groups()}
    assert driver.ex_delete_security_group(made)


def test_a_port_is_attached_and_detached(driver: Any, server: Any) -> None:
    made = driver.ex_create_port(network(driver, PRIVATE), name="another")
    assert driver.ex_attach_port_interface(server, made)
    wait_for(lambda: made.id in {one.id for one in driver.ex_get_node_ports(server)})
    wait_for(lambda: driver.ex_get_port(made.id).extra["device_id"] == server.id)
    assert driver.ex_detach_port_interface(server, made)
    wait_for(lambda: not driver.ex_get_port(made.id).extra["device_id"])
    assert driver.ex_delete_port(made)


def test_a_network_and_a_subnet_are_made_and_deleted(driver: Any) -> None:
    made = driver.ex_create_network("another")
    subnet = driver.ex_create_subnet("another", made, "203.0.113.0/24")
    assert subnet.id in {one.id for one in driver.ex_list_subnets()}
    assert driver.ex_get_network(made.id).name == "another"
    assert driver.ex_delete_subnet(subnet)
    assert driver.ex_delete_network(made)


def test_a_router_gets_and_loses_a_subnet(driver: Any) -> None:
    made = driver.ex_create_network("routed")
    subnet = driver.ex_create_subnet("routed", made, "203.0.113.0/24")
    router = driver.ex_create_router("another")
    assert driver.ex_add_router_subnet(router, subnet)
    assert driver.ex_del_router_subnet(router, subnet)
    assert router.id in {one.id for one in driver.ex_list_routers()}
    assert driver.ex_delete_router(router)
    assert driver.ex_delete_subnet(subnet)
    assert driver.ex_delete_network(made)


def test_a_floating_ip_is_attached_and_detached(driver: Any, server: Any) -> None:
    assert [pool.name for pool in driver.ex_list_floating_ip_pools()] == [PUBLIC]
    made = driver.ex_create_floating_ip(PUBLIC)
    assert driver.ex_attach_floating_ip_to_node(server, made)
    wait_for(lambda: made.ip_address in driver.ex_get_node_details(server.id).public_ips)
    assert made.ip_address in {one.ip_address for one in driver.ex_list_floating_ips()}
    assert driver.ex_detach_floating_ip_from_node(server, made)
    assert driver.ex_delete_floating_ip(made)


def test_quotas_are_shown(driver: Any, server: Any) -> None:
    project = server.extra["tenantId"]
    found = driver.ex_get_quota_set(project)
    assert found.instances.limit == 100
    assert found.instances.in_use >= 1
    assert driver.ex_get_network_quotas(project).port.limit
    assert driver.ex_get_volume_quotas(project).volumes.limit


def test_what_is_deleted_is_found_no_longer(driver: Any) -> None:
    with a_server(driver) as node:
        pass
    assert node.id not in {one.id for one in driver.list_nodes()}
