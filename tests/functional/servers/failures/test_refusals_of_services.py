"""What another service refuses about a thing that a user named is the user's to know: 4xx with the service's reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud

CLOUD: dict[str, Any] = {"cells": 1, "hosts_per_cell": 1}
# What services say to a request that they understood and do not carry out.
REFUSALS = pytest.mark.parametrize("status", [400, 403, 404, 409, 413])


Ask = Callable[[], Any]


def attach(cloud: Cloud, server: Any, volume: Any) -> Any:
    body = {"volumeAttachment": {"volumeId": volume.id}}
    return cloud.member.compute.post(f"/servers/{server.id}/os-volume_attachments", json=body)


def test_a_volume_that_was_reset_is_not_attached_twice(cloud: Cloud) -> None:
    """1908075 on Launchpad."""
    first, second, volume = cloud.boot(), cloud.boot("second"), cloud.volume()
    cloud.attach(first, volume)
    cloud.admin.block_storage.reset_volume_status(volume, "available", None, None)
    refused = attach(cloud, second, volume)
    assert refused.status_code == 400
    assert "duplicate connectors detected" in refused.json()["badRequest"]["message"]
    assert cloud.attachments(second) == [] and len(cloud.attachments(first)) == 1
    assert [each.volume_id for each in cloud.member.compute.volume_attachments(first.id)] == [volume.id]
    assert list(cloud.member.compute.volume_attachments(second.id)) == []


def attach_volume(cloud: Cloud) -> Ask:
    return partial(attach, cloud, cloud.boot(), cloud.volume())


def _interface(cloud: Cloud, **wanted: str) -> Ask:
    path = f"/servers/{cloud.boot().id}/os-interface"
    return partial(cloud.member.compute.post, path, json={"interfaceAttachment": wanted})


def attach_port(cloud: Cloud) -> Ask:
    return _interface(cloud, port_id=cloud.member.network.create_port(network_id=cloud.network_id).id)


def attach_network(cloud: Cloud) -> Ask:
    return _interface(cloud, net_id=cloud.network_id)


def _creation(cloud: Cloud, **fields: Any) -> Ask:
    body = {"server": {"name": "another", "flavorRef": "gen1.small", **fields}}
    return partial(cloud.member.compute.post, "/servers", json=body, microversion="2.37")


def create(cloud: Cloud) -> Ask:
    return _creation(cloud, imageRef=cloud.image_id, networks=[{"uuid": cloud.network_id}])


def create_from_volume(cloud: Cloud) -> Ask:
    device = {"source_type": "volume", "destination_type": "volume", "uuid": cloud.volume().id, "boot_index": 0}
    return _creation(cloud, networks="none", block_device_mapping_v2=[device])


def _act(cloud: Cloud, action: str, **value: str) -> Ask:
    path = f"/servers/{cloud.boot().id}/action"
    return partial(cloud.member.compute.post, path, json={action: value}, microversion="2.37")


def add_group(cloud: Cloud) -> Ask:
    return _act(cloud, "addSecurityGroup", name=cloud.member.network.create_security_group(name="more").id)


def add_address(cloud: Cloud) -> Ask:
    path = f"/servers/{cloud.boot().id}/action"
    body = {"addFixedIp": {"networkId": cloud.network_id}}
    return partial(cloud.member.compute.post, path, json=body, microversion="2.1")


def rebuild(cloud: Cloud) -> Ask:
    return _act(cloud, "rebuild", imageRef=cloud.image_id)


def snapshot(cloud: Cloud) -> Ask:
    return _act(cloud, "createImage", name="copy")


CALLS = [
    (attach_volume, "volume", "GET", "/volumes/"),
    (attach_volume, "volume", "POST", "/attachments$"),
    (attach_volume, "volume", "PUT", "/attachments/"),
    (attach_volume, "volume", "POST", "/attachments/.*/action"),
    (attach_port, "network", "GET", "/ports/"),
    (attach_port, "network", "PUT", "/ports/"),
    (attach_network, "network", "GET", "/networks"),
    (attach_network, "network", "POST", "/ports$"),
    (create, "image", "GET", "/images/"),
    (create, "network", "GET", "/networks"),
    (create_from_volume, "volume", "GET", "/volumes/"),
    (create_from_volume, "volume", "POST", "/attachments$"),
    (add_group, "network", "GET", "/security-groups"),
    (add_group, "network", "PUT", "/ports/"),
    (add_address, "network", "GET", "/ports"),
    (add_address, "network", "PUT", "/ports/"),
    (rebuild, "image", "GET", "/images/"),
    (snapshot, "image", "POST", "/images$"),
]


@REFUSALS
@pytest.mark.parametrize(
    ("prepare", "service", "method", "path"),
    [pytest.param(*call, id=f"{call[0].__name__}-{call[2]}-{call[3]}") for call in CALLS],
)
def test_a_refusal_is_the_users(
    cloud: Cloud, prepare: Callable[[Cloud], Ask], service: str, method: str, path: str, status: int
) -> None:
    ask = prepare(cloud)
    cloud.fail("status", path, service=service, method=method, status=status)
    answer = ask()
    assert 400 <= answer.status_code < 500, answer.text
