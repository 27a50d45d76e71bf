"""What is sent at the edges of what a microversion allows: taken and refused as in Nova.

A row: method, path, body, minor version, status. ``{server}`` and ``{offloaded}`` stand for the ids of servers that are there.
"""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.network import FixedIp, Vif
from causeway.model.states import PowerState, VmState
from causeway.store.api import flavors

UUID = "11111111-2222-3333-4444-555555555555"
IMAGE = "22222222-2222-3333-4444-555555555555"
LONG = "a" * 1000
ODD = "zz=1"
Row = tuple[str, str, Any, int, int]


@pytest.fixture
def places(cloud: Any, conductor: Any, images: Any, network: Any) -> dict[str, str]:
    """What the rows' paths name."""
    cloud.host("host1")
    for flavor in (Flavor("1", "m1.tiny", vcpus=1, memory_mb=512, root_gb=1), Flavor("2", "m1.small", 1, 512, 1)):
        flavors.create(cloud.services.api, flavor)
    images.answers["show"] = ImageMeta(IMAGE)
    network.answers["validate_networks"] = lambda _context, asked, _count, _project, **_external: asked
    network.answers["security_group_ids"] = lambda _context, _project, names: [UUID for _name in names]
    network.answers["ports_of_server"] = [{"id": UUID, "security_groups": [UUID], "fixed_ips": []}]
    conductor.answers["get_console_output"] = ""
    conductor.answers["add_port"] = Vif(UUID, "fa:16:3e:00:00:01", UUID, fixed_ips=[FixedIp("10.0.0.4", UUID)])
    server = cloud.server(host="host1", node="host1", tags=["t"], image_ref=IMAGE)
    offloaded = cloud.server(vm_state=VmState.SHELVED_OFFLOADED, power_state=PowerState.SHUTDOWN)
    return {"server": server.uuid, "offloaded": offloaded.uuid}


def answered(caller: Any, row: Row, places: dict[str, str]) -> tuple[int, Any]:
    method, path, body, minor, _status = row
    answer = caller.call(method, path.format(**places), body, version=f"2.{minor}")
    return answer.status, answer.text


def create(**more: Any) -> dict[str, Any]:
    return {"server": {"name": "n", "flavorRef": "1", "imageRef": IMAGE} | more}


def named(**more: Any) -> dict[str, Any]:
    return {"host": "host1", "binary": "nova-compute"} | more


def unshelve(minor: int, value: Any, status: int) -> Row:
    return "POST", "/servers/{offloaded}/action", {"unshelve": value}, minor, status


BODIES: list[Row] = [
    # An empty object asks for nothing in particular, from 2.91 on.
    unshelve(76, {}, 202),
    unshelve(77, {}, 400),
    unshelve(90, {}, 400),
    unshelve(91, {}, 202),
    unshelve(104, None, 202),
    unshelve(77, {"availability_zone": " nova "}, 400),
    unshelve(104, {"availability_zone": LONG}, 400),
    unshelve(104, {"host": LONG}, 400),
    unshelve(104, {"zz": 1}, 400),
    ("POST", "/servers/{server}/os-interface", {}, 1, 200),
    ("POST", "/servers/{server}/os-interface", {}, 104, 200),
    ("POST", "/servers/{server}/os-interface", {"interfaceAttachment": {}}, 104, 200),
    ("POST", "/servers/{server}/os-interface", {"zz": {}}, 104, 400),
    ("POST", "/servers/{server}/os-interface", None, 104, 400),
    # Groups' quotas were taken before they were shown.
    ("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"server_groups": 3}}, 1, 200),
    ("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"server_group_members": 3}}, 49, 200),
    ("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"floating_ips": 3}}, 50, 400),
    ("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"injected_files": 3}}, 57, 400),
    ("PUT", "/os-quota-sets/project", {"quota_set": {"cores": 3, "tenant_id": "project"}}, 1, 400),
    # One schema for four ways to change a service.
    ("PUT", "/os-services/enable", named(disabled_reason="why"), 1, 200),
    ("PUT", "/os-services/enable", named(forced_down=True), 10, 400),
    ("PUT", "/os-services/enable", named(forced_down=True), 11, 200),
    ("PUT", "/os-services/enable", named(zz=1), 52, 400),
    ("PUT", "/os-services/disable", named(disabled_reason="why", forced_down=False), 52, 200),
    ("PUT", "/os-services/disable-log-reason", named(), 52, 400),
    ("PUT", "/os-services/disable-log-reason", named(disabled_reason="why", forced_down="no"), 52, 200),
    ("PUT", "/os-services/force-down", named(), 52, 400),
    ("PUT", "/os-services/force-down", named(disabled_reason="why", forced_down="y"), 52, 400),
    ("PUT", "/os-services/force-down", named(disabled_reason="why", forced_down="yes"), 52, 200),
    ("POST", "/flavors/1/os-extra_specs", {"extra_specs": {"a": "", "trait:X": ""}}, 85, 200),
    ("POST", "/flavors/1/os-extra_specs", {"extra_specs": {"a": ""}}, 104, 200),
    ("POST", "/flavors/1/os-extra_specs", {"extra_specs": {"hw:cpu_policy": ""}}, 104, 400),
    ("PUT", "/flavors/1/os-extra_specs/a", {"a": ""}, 104, 200),
    ("POST", "/flavors", {"flavor": {"name": "f", "ram": 1, "vcpus": 1, "disk": 0, "rxtx_factor": 0}}, 101, 400),
    ("POST", "/flavors", {"flavor": {"name": "f", "ram": 1, "vcpus": 1, "disk": 0, "description": "a\tb"}}, 101, 400),
    # Characters that are none of base64 are left out.
    ("POST", "/servers", create(user_data="Q-Q!=\n=", networks="none"), 104, 202),
    ("POST", "/servers", create(user_data="QQ", networks="none"), 104, 400),
    ("POST", "/servers", create(user_data="é", networks="none"), 104, 400),
    ("POST", "/servers", create(personality=[{"path": "/a", "contents": "Q:Q=="}], networks="none"), 56, 202),
    ("POST", "/servers", create(personality=[{"path": "/a", "contents": "Q"}], networks="none"), 56, 400),
    ("POST", "/servers/{server}/action", {"rebuild": {"imageRef": IMAGE, "user_data": "Q-Q=="}}, 57, 202),
    # What is looked up, or kept nowhere, may be long.
    ("POST", "/servers", create(adminPass=LONG, networks="none"), 104, 202),
    ("POST", "/servers", create(flavorRef=LONG, networks="none"), 104, 400),
    ("POST", "/servers/{server}/action", {"resize": {"flavorRef": LONG}}, 104, 400),
    ("POST", "/servers/{server}/action", {"rebuild": {"imageRef": IMAGE, "adminPass": LONG}}, 104, 202),
    ("POST", "/servers/{server}/action", {"os-getConsoleOutput": {"length": "9" * 40}}, 104, 200),
    ("POST", "/servers/{server}/action", {"addSecurityGroup": {"name": " " + LONG}}, 104, 202),
    ("POST", "/servers/{server}/action", {"removeSecurityGroup": {"name": " g "}}, 104, 202),
    ("POST", "/servers/{server}/action", {"addSecurityGroup": {"name": ""}}, 104, 400),
    ("POST", "/servers/{server}/action", {"trigger_crash_dump": None}, 104, 202),
    ("POST", "/servers/{server}/action", {"trigger_crash_dump": {}}, 104, 400),
    ("POST", "/servers/{server}/action", {"os-guestTrim": None}, 1, 202),
    ("POST", "/servers/{server}/action", {"os-guestTrim": {}}, 104, 400),
    # Names
    ("POST", "/os-server-groups", {"server_group": {"name": " g", "policy": "affinity"}}, 104, 400),
    ("POST", "/servers", create(name=" n", networks="none"), 104, 400),
    ("POST", "/servers", create(key_name="k ", networks="none"), 104, 400),
    ("POST", "/servers", create(security_groups=[{"name": " g"}], networks="none"), 104, 400),
    ("POST", "/servers", create(hostname="a_b", networks="none"), 93, 400),
    ("POST", "/servers", create(hostname="a_b", networks="none"), 94, 202),
    ("POST", "/servers", create(imageRef="cirros", networks="none"), 104, 400),
    ("POST", "/servers", create(description="a\tb", networks="none"), 104, 400),
    ("POST", "/servers", create(accessIPv4="", networks="none"), 104, 400),
    ("POST", "/servers", create(config_drive="y", networks="none"), 104, 400),
    ("POST", "/servers", create(config_drive="yes", networks="none"), 104, 202),
    ("POST", "/servers", create() | {"os:scheduler_hints": {"same_host": UUID, "cidr": "/24"}}, 1, 202),
    ("POST", "/servers", create() | {"os:scheduler_hints": {"cidr": "24"}}, 1, 400),
    ("POST", "/servers", create() | {"os:scheduler_hints": {"query": []}}, 1, 400),
    ("PUT", "/servers/{server}", {"server": {"accessIPv6": ""}}, 104, 400),
    ("PUT", "/servers/{server}/tags/new", None, 104, 201),
    ("PUT", "/servers/{server}/tags/new", {"tag": "new"}, 104, 400),
]  # fmt: skip

READ_WITHOUT_QUERY = [
    "/servers/{server}", "/servers/{server}/metadata", "/servers/{server}/os-interface", "/servers/{server}/ips",
    "/servers/{server}/os-instance-actions/x", "/servers/{server}/migrations", "/servers/{server}/topology", "/flavors/1",
    "/flavors/1/os-extra_specs", "/os-aggregates", "/os-availability-zone", "/extensions", "/os-quota-class-sets/default",
    f"/os-server-groups/{UUID}", "/os-instance_usage_audit_log",
]  # fmt: skip
LISTS_WITH_QUERY = [
    "/servers", "/servers/detail", "/flavors", "/os-keypairs", "/os-server-groups", "/os-services", "/limits",
    "/os-quota-sets/project", "/os-quota-sets/project/detail", "/os-simple-tenant-usage",
    "/servers/{server}/os-volume_attachments",
]  # fmt: skip
IGNORE_FOR_EVER = [
    ("GET", "/servers/{server}/tags", None, 200),
    ("GET", "/servers/{server}/tags/t", None, 204),
    ("GET", f"/servers/{{server}}/os-volume_attachments/{UUID}", None, 404),
    ("GET", "/os-quota-sets/project/defaults", None, 200),
    ("GET", "/versions/v2.1", None, 200),
    ("POST", "/servers/{server}/action", {"pause": None}, 202),
    ("POST", "/os-aggregates", {"aggregate": {"name": "a"}}, 200),
    ("PUT", "/servers/{server}", {"server": {"name": "new"}}, 200),
    ("DELETE", "/servers/{server}/metadata/k", None, 404),
    ("DELETE", "/servers/{server}", None, 204),
]


def unknown_parameters() -> list[Row]:
    rows: list[Row] = []
    for path in READ_WITHOUT_QUERY:
        rows += [("GET", f"{path}?{ODD}", None, 102, 400), ("GET", f"{path}?{ODD}", None, 104, 400)]
    rows += [("GET", f"{path}?{ODD}", None, minor, 400) for path in LISTS_WITH_QUERY for minor in (75, 104)]
    rows += [
        (method, f"{path}?{ODD}", body, minor, status)
        for method, path, body, status in IGNORE_FOR_EVER
        for minor in (26, 101, 102, 104)
    ]
    return rows


QUERIES: list[Row] = [
    ("GET", "/servers/{server}/shares?zz=1", None, 97, 400),
    ("GET", f"/servers/{{server}}/shares/{UUID}?zz=1", None, 97, 400),
    ("GET", "/os-migrations?instance_uuid=abc", None, 58, 200),
    ("GET", "/os-migrations?instance_uuid=abc", None, 59, 200),
    ("GET", "/os-migrations?instance_uuid=abc", None, 79, 200),
    ("GET", "/os-migrations?instance_uuid=abc&user_id=&project_id=" + LONG, None, 104, 200),
    ("GET", "/os-migrations?marker=abc", None, 104, 400),
    ("GET", "/os-migrations?limit=1&limit=2", None, 104, 400),
    ("GET", "/limits?reserved=1", None, 74, 200),
    ("GET", "/limits?reserved=1", None, 75, 400),
    ("GET", "/limits?tenant_id=admin", None, 104, 200),
    ("GET", "/os-quota-sets/project?user_id=" + LONG, None, 104, 200),
    ("GET", "/os-quota-sets/project?user_id=", None, 104, 200),
    ("GET", "/os-hypervisors?limit=1&limit=1", None, 52, 200),
    ("GET", "/os-hypervisors?limit=1&limit=1", None, 53, 400),
    ("GET", "/os-hypervisors?with_servers=1&with_servers=1", None, 104, 400),
    ("GET", "/os-hypervisors?with_servers=y", None, 104, 400),
    ("GET", "/os-hypervisors?hypervisor_hostname_pattern=[", None, 104, 400),
    ("GET", "/os-hypervisors?hypervisor_hostname_pattern=host", None, 104, 200),
    ("GET", "/servers/{server}/os-instance-actions?limit=1&limit=1", None, 104, 400),
    ("GET", "/servers/{server}/os-instance-actions?marker=" + LONG, None, 104, 400),
    # Several values are allowed where nothing forbids it: the last one counts.
    ("GET", "/servers?limit=1&limit=2", None, 104, 200),
    ("GET", "/servers?limit=99999999999", None, 104, 200),
    ("GET", "/servers?limit=1&limit=x", None, 104, 400),
    ("GET", "/servers?limit=", None, 104, 400),
    ("GET", "/flavors?limit=" + "9" * 40, None, 104, 200),
    ("GET", "/flavors?limit=-1", None, 104, 400),
    ("GET", "/flavors?sort_dir=", None, 1, 400),
    ("GET", "/flavors?sort_dir=up", None, 104, 400),
    ("GET", "/flavors?sort_dir=desc", None, 104, 200),
    ("GET", "/flavors?name=" + LONG, None, 104, 200),
    ("GET", "/os-server-groups?offset=99999999999", None, 104, 200),
    ("GET", "/servers/{server}/os-volume_attachments?offset=99999999999", None, 104, 200),
    ("GET", "/servers?sort_dir=", None, 1, 400),
    ("GET", "/servers/detail?sort_dir=", None, 104, 400),
    ("GET", "/servers?sort_key=vcpus&sort_dir=asc", None, 74, 200),
    ("GET", "/servers?sort_key=vcpus", None, 75, 400),
    ("GET", "/servers?sort_key=locked", None, 1, 200),
    ("GET", "/servers?sort_key=host", None, 104, 200),
    ("GET", "/servers?tags=" + ",".join(f"{number:050}" for number in range(80)), None, 104, 200),
    ("GET", "/servers?name=" + LONG, None, 104, 200),
    ("GET", "/servers?name=" + LONG * 5, None, 104, 400),
    ("GET", "/servers?name=" + LONG + ".*b?", None, 104, 200),
    ("GET", "/servers?host_status=UP", None, 74, 200),
    ("GET", "/servers?host_status=UP", None, 75, 400),
    ("GET", "/servers?metadata=x", None, 1, 400),
    ("GET", "/servers?_sa_instance_state=x", None, 1, 400),
    ("GET", "/servers?_sa_instance_state=x", None, 104, 400),
]
PATTERNS = [
    "name", "ip", "ip6", "key_name", "flavor", "availability_zone", "reservation_id", "node", "description", "kernel_id",
    "access_ip_v4", "config_drive", "power_state", "created_at", "tags", "not-tags-any",
]  # fmt: skip
PROXIED: list[Row] = [
    ("GET", "/images?page_size=0", None, 35, 400),
    ("POST", f"/servers/{UUID}/action", {"removeFloatingIp": {"address": "10.0.0.1", "zz": 1}}, 35, 400),
    ("GET", "/images?page_size=x", None, 1, 400),
    ("GET", "/images?page_size=", None, 1, 400),
    ("GET", "/images/detail?limit=0", None, 35, 400),
    ("GET", "/images/detail?offset=-1", None, 35, 400),
    ("GET", "/images?page_size=5&limit=1&zz=1", None, 35, 200),
    ("GET", "/os-security-groups?limit=x", None, 35, 400),
    ("GET", "/os-security-groups?limit=1&limit=x", None, 35, 400),
    ("GET", "/os-volumes?offset=", None, 35, 400),
    ("GET", "/os-volumes/detail?limit=-1", None, 35, 400),
    ("GET", "/os-snapshots?limit=x", None, 35, 400),
    ("POST", "/os-security-groups", {"security_group": {"name": "g"}}, 35, 400),
    ("POST", "/os-security-groups", {"security_group": {"name": "g", "description": None}}, 35, 400),
    ("POST", "/os-security-groups", {"security_group": {"name": "g", "description": LONG}}, 35, 400),
    ("PUT", f"/os-security-groups/{UUID}", {"security_group": {"name": "g"}}, 35, 400),
    ("POST", "/os-security-group-rules", {"security_group_rule": {"parent_group_id": "1"}}, 35, 400),
    ("POST", "/os-security-group-rules", {"security_group_rule": {"ip_protocol": "tcp"}}, 35, 400),
    ("POST", "/os-volumes", {"volume": {"size": 1, "display_name": None}}, 35, 400),
    ("POST", "/os-volumes", {"volume": {"size": 1, "zz": 1}}, 35, 400),
    ("POST", "/os-snapshots", {"snapshot": {"volume_id": UUID, "zz": 1}}, 35, 400),
]


def named_row(row: Row) -> str:
    method, path, body, minor, _status = row
    return f"{method} {path[:60]} {str(body)[:70]} @{minor}"


@pytest.mark.parametrize("row", BODIES, ids=named_row)
def test_bodies_are_taken_or_refused_by_version(admin: Any, places: dict[str, str], row: Row) -> None:
    status, said = answered(admin, row, places)
    assert status == row[4], said


@pytest.mark.parametrize("row", QUERIES, ids=named_row)
def test_query_parameters_are_taken_or_refused_by_version(admin: Any, places: dict[str, str], row: Row) -> None:
    status, said = answered(admin, row, places)
    assert status == row[4], said


@pytest.mark.parametrize("row", unknown_parameters(), ids=named_row)
def test_unknown_query_parameters_are_taken_or_refused_by_version(admin: Any, places: dict[str, str], row: Row) -> None:
    status, said = answered(admin, row, places)
    assert status == row[4], said


@pytest.mark.parametrize("name", PATTERNS)
def test_filters_that_are_no_patterns_are_refused_by_name(admin: Any, name: str) -> None:
    for minor in (26, 104):
        for value in ("%5B", "(a", ""):
            refused = admin.get(f"/servers?all_tenants=1&{name}={value}", version=f"2.{minor}")
            assert refused.status == 400, (value, minor)
            assert name in refused.message


def test_a_pattern_fits_anywhere(admin: Any, cloud: Any) -> None:
    cloud.server(display_name="a", project_id="admin", key_name="my-key", reservation_id="r-1")
    cloud.server(display_name="b", project_id="admin")
    for query in ("key_name=^my", "key_name=y.k", "reservation_id=1", "key_name=" + "(my|your)-key"):
        assert [shown["name"] for shown in admin.get(f"/servers?{query}").json["servers"]] == ["a"], query


@pytest.mark.parametrize("row", PROXIED, ids=named_row)
def test_what_is_passed_on_is_taken_or_refused_by_version(api: Any, images: Any, row: Row) -> None:
    images.answers["forward"] = {"images": []}
    status, said = answered(api, row, {})
    assert status == row[4], said


def test_only_administrators_sort_by_hosts(api: Any) -> None:
    assert api.get("/servers?sort_key=host").status == 403
    assert api.get("/servers?sort_key=display_name").status == 200


def test_a_key_without_meaning_takes_its_direction_with_it(admin: Any, cloud: Any) -> None:
    for name in ("a", "b"):
        cloud.server(display_name=name, project_id="admin")
    path = "/servers?sort_key=vcpus&sort_key=display_name&sort_dir=desc&sort_dir=asc"
    assert [shown["name"] for shown in admin.get(path, version="2.1").json["servers"]] == ["a", "b"]


def test_a_floating_ip_without_a_body_is_of_any_pool(api: Any, network: Any) -> None:
    network.answers["forward"] = {"networks": []}
    refused = api.post("/os-floating-ips", version="2.35")
    assert (refused.status, refused.message) == (404, "Floating IP pool  not found.")


class TestLegacyEndpoint:
    def test_spaces_around_names_are_cut_off(self, admin: Any, cloud: Any) -> None:
        made = admin.post("/os-aggregates", {"aggregate": {"name": " a ", "availability_zone": " z"}}, root="/v2")
        assert (made.json["aggregate"]["name"], made.json["aggregate"]["availability_zone"]) == ("a", "z")
        flavor = {"name": " f ", "ram": 1, "vcpus": 1, "disk": 0}
        assert admin.post("/flavors", {"flavor": flavor}, root="/v2").json["flavor"]["name"] == "f"
        made = admin.post("/os-keypairs", {"keypair": {"name": " k "}}, root="/v2")
        assert made.json["keypair"]["name"] == "k"
        server = cloud.server(project_id="admin")
        renamed = admin.put(f"/servers/{server.uuid}", {"server": {"name": "new "}}, root="/v2")
        assert renamed.json["server"]["name"] == "new"

    def test_names_of_spaces_only_are_refused(self, admin: Any) -> None:
        assert admin.post("/os-aggregates", {"aggregate": {"name": "  "}}, root="/v2").status == 400
        assert admin.post("/os-aggregates", {"aggregate": {"name": " a"}}).status == 400
