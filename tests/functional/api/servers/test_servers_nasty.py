"""Whatever is sent about servers, the answer is never a 500."""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway.clients.volume import Volume
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.network import Vif
from causeway.store.api import flavors

UUID = "11111111-2222-3333-4444-555555555555"
CREATE = {
    "server": {
        "name": "n", "flavorRef": "1", "imageRef": UUID, "networks": [{"uuid": UUID, "fixed_ip": "10.0.0.1", "tag": "t"}],
        "metadata": {"k": "v"}, "tags": ["t"], "user_data": "QQ==", "min_count": 1, "max_count": 1,
        "availability_zone": "nova", "config_drive": True, "security_groups": [{"name": "default"}], "hostname": "host",
        "description": "d", "accessIPv4": "10.0.0.1", "host": "h", "return_reservation_id": False,
        "block_device_mapping_v2": [
            {"uuid": UUID, "source_type": "volume", "destination_type": "volume", "boot_index": -1, "volume_size": 1, "tag": "t",
             "device_name": "/dev/vdb", "delete_on_termination": True, "volume_type": "x", "disk_bus": "virtio"},
        ],
    },
    "os:scheduler_hints": {"same_host": [UUID], "query": "[]", "else": "x"},
}  # fmt: skip
REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/servers", CREATE),
    ("PUT", "/servers/{id}", {"server": {"name": "n", "description": "d", "accessIPv4": "1.2.3.4", "hostname": "hh"}}),
    ("POST", "/servers/{id}/action", {"resize": {"flavorRef": "1", "OS-DCF:diskConfig": "AUTO"}}),
    ("POST", "/servers/{id}/action", {"migrate": {"host": "h"}}),
    ("POST", "/servers/{id}/action", {"reboot": {"type": "HARD"}}),
    ("POST", "/servers/{id}/action", {"lock": {"locked_reason": "r"}}),
    ("POST", "/servers/{id}/action", {"os-getConsoleOutput": {"length": 5}}),
    ("POST", "/servers/{id}/metadata", {"metadata": {"k": "v"}}),
    ("PUT", "/servers/{id}/metadata/k", {"meta": {"k": "v"}}),
    ("PUT", "/servers/{id}/tags", {"tags": ["t"]}),
    ("POST", "/servers/{id}/os-volume_attachments", {"volumeAttachment": {"volumeId": UUID, "device": "/dev/vdb"}}),
    ("PUT", f"/servers/{{id}}/os-volume_attachments/{UUID}", {"volumeAttachment": {"volumeId": UUID, "tag": "t"}}),
    ("POST", "/servers/{id}/os-interface", {"interfaceAttachment": {"net_id": UUID, "fixed_ips": [{"ip_address": "1.2.3.4"}]}}),
]  # fmt: skip
NASTY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(
        ["", " ", "\x00", "é" * 300, "-1", "0", "9" * 30, "%s%n", "../../etc", "'; --", UUID, "1e309", "(?P<"]
    ),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            found += places(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            found += places(part, (*path, index))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    whole = copy.deepcopy(value)
    part = whole
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = new
    return whole


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_no_body_of_a_request_is_answered_with_500(
    admin: Any, cloud: Any, images: Any, network: Any, volumes: Any, conductor: Any, data: st.DataObject
) -> None:
    images.answers["show"] = lambda _context, image_id: ImageMeta(image_id)
    network.answers["validate_networks"] = lambda _context, requested, *_rest, **_more: requested
    volumes.answers["show"] = lambda _context, volume_id: Volume(volume_id, "available", 1)
    conductor.answers["get_console_output"] = ""
    conductor.answers["add_volume"] = BlockDevice(UUID, UUID, "volume", "volume", volume_id=UUID)
    conductor.answers["add_port"] = Vif(UUID, "fa:16:3e:00:00:01", UUID)
    if not flavors.list_all(cloud.services.api):
        flavors.create(cloud.services.api, Flavor("1", "f", 1, 1, 1))
        cloud.host("h")
    server = cloud.server(host="h", node="h", project_id="admin")
    method, path, body = data.draw(st.sampled_from(REQUESTS))
    place = data.draw(st.sampled_from(places(body)))
    sent = replaced(body, place, data.draw(NASTY))
    version = data.draw(st.sampled_from(["2.1", "2.36", "2.56", "2.74", "2.96", "2.104"]))
    answer = admin.call(method, path.format(id=server.uuid), sent, version=version)
    assert answer.status < 500, (method, path, sent, answer.text)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from(
        [
            "limit",
            "marker",
            "sort_key",
            "sort_dir",
            "name",
            "status",
            "ip",
            "ip6",
            "changes-since",
            "tags",
            "not-tags-any",
            "metadata",
            "power_state",
            "created_at",
            "deleted",
            "locked",
            "all_tenants",
            "flavor",
            "task_state",
            "uuid",
            "x",
        ]
    ),
    value=st.one_of(
        st.text(max_size=10),
        st.sampled_from(["9" * 30, "[", "(", "*", "\\", "{}", '{"a": 1}', "0001-01-01T00:00:00+14:00"]),
    ),
    version=st.sampled_from(["2.1", "2.74", "2.96"]),
)
def test_no_parameter_of_a_list_is_answered_with_500(admin: Any, name: str, value: str, version: str) -> None:

    answer = admin.get("/servers/detail", query=f"{quote(name)}={quote(value)}", version=version)
    assert answer.status < 500, answer.text


@pytest.mark.parametrize("server_id", ["x" * 300, "%2e%2e", "'", "%F0%9F%92%A9", "\\"])
def test_no_id_of_a_server_is_answered_with_500(admin: Any, server_id: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        body = {"server": {"name": "n"}} if method == "PUT" else None
        assert admin.call(method, f"/servers/{server_id}", body).status in (400, 404)
