"""What is passed on to other services until 2.35: translations, and that it is gone from 2.36 on."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors

IMAGE = "11111111-2222-3333-4444-555555555555"
NETWORK = "22222222-2222-3333-4444-555555555555"
GROUP = "33333333-2222-3333-4444-555555555555"
FLOATING = "44444444-2222-3333-4444-555555555555"
OLD = "2.35"


class Service:
    """Answers calls that are passed on: (method, route) -> JSON; notes them."""

    def __init__(self, answers: dict[tuple[str, str], Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, str, dict[str, Any]]] = []

    def __call__(self, _context: Any, method: str, route: str, _what: str, **more: Any) -> Any:
        self.calls.append((method, route, {name: value for name, value in more.items() if value is not None}))
        answer = self.answers[method, route]
        if isinstance(answer, Exception):
            raise answer
        return answer


def image(**more: Any) -> dict[str, Any]:
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}
    return {
        "id": IMAGE, "name": "i", "status": "active", "min_disk": 1, "min_ram": 2, "size": 3, "os_distro": "debian",
        **times, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/images", "/os-networks", "/os-tenant-networks", "/os-floating-ips", "/os-security-groups", "/os-volumes"]
)
def test_proxies_are_gone_from_2_36_on(api: Any, path: str) -> None:
    assert api.get(path, version="2.36").status == 404


class TestImages:
    def test_an_image_is_shown_in_the_old_form(self, api: Any, images: Any) -> None:
        images.answers["forward"] = Service({("GET", "/v2/images/{image_id}"): image(instance_uuid=GROUP)})
        shown = api.get(f"/images/{IMAGE}", version=OLD).json["image"]
        assert (shown["status"], shown["progress"], shown["minDisk"], shown["minRam"]) == ("ACTIVE", 100, 1, 2)
        assert shown["metadata"] == {"os_distro": "debian", "instance_uuid": GROUP}
        assert shown["server"]["id"] == GROUP
        assert api.get("/images/nonsense", version=OLD).status == 404

    def test_filters_and_pages_are_translated(self, api: Any, images: Any) -> None:
        service = images.answers["forward"] = Service({("GET", "/v2/images"): {"images": [image()], "next": "/more"}})
        listed = api.get("/images?limit=1&status=SAVING&server=http://any/servers/s&property-a=b", version=OLD)
        assert [shown["id"] for shown in listed.json["images"]] == [IMAGE]
        assert f"marker={IMAGE}" in listed.json["images_links"][0]["href"]
        query = service.calls[0][2]["query"]
        assert query["status"] == "in:queued,saving,importing"
        assert (query["instance_uuid"], query["a"]) == ("s", "b")
        assert api.get("/images?limit=x", version=OLD).status == 400

    def test_metadata_is_changed_by_what_differs(self, api: Any, images: Any) -> None:
        answers = {("GET", "/v2/images/{image_id}"): image(a="1"), ("PATCH", "/v2/images/{image_id}"): image(b="2")}
        service = images.answers["forward"] = Service(answers)
        path = f"/images/{IMAGE}/metadata"
        changed = api.put(path, {"metadata": {"os_distro": "debian", "b": "2"}}, version="2.38")
        assert changed.json["metadata"] == {"os_distro": "debian", "b": "2"}
        assert service.calls[-1][2]["body"] == [
            {"op": "add", "path": "/b", "value": "2"},
            {"op": "remove", "path": "/a"},
        ]
        assert api.get(f"{path}/none", version="2.38").status == 404
        assert api.put(f"{path}/a", {"meta": {"b": "2"}}, version="2.38").status == 400
        assert api.get(path, version="2.39").status == 404


def floating(port: str | None = None) -> dict[str, Any]:
    address = "10.0.0.3" if port else None
    return {
        "id": FLOATING, "floating_ip_address": "192.0.2.9", "floating_network_id": NETWORK, "port_id": port,
        "fixed_ip_address": address,
    }  # fmt: skip


class TestFloatingIps:
    @pytest.fixture
    def service(self, network: Any) -> Service:
        network.answers["show_port"] = {"device_id": NETWORK}
        network.answers["forward"] = service = Service(
            {
                ("GET", "/v2.0/networks"): {"networks": [{"id": NETWORK, "name": "public"}]},
                ("GET", "/v2.0/floatingips"): {"floatingips": [floating()]},
                ("POST", "/v2.0/floatingips"): {"floatingip": floating()},
                ("PUT", "/v2.0/floatingips/{floating_ip_id}"): {"floatingip": floating()},
            }
        )
        return service

    def test_a_floating_ip_is_made_in_a_pool_by_name(self, api: Any, service: Service) -> None:
        made = api.post("/os-floating-ips", {"pool": "public"}, version=OLD)
        expected = {"id": FLOATING, "ip": "192.0.2.9", "pool": "public", "fixed_ip": None, "instance_id": None}
        assert made.json == {"floating_ip": expected}
        assert service.calls[1][2]["body"]["floatingip"]["floating_network_id"] == NETWORK
        assert api.post("/os-floating-ips", {"pool": "other"}, version=OLD).status == 404
        assert api.get("/os-floating-ip-pools", version=OLD).json == {"floating_ip_pools": [{"name": "public"}]}

    def test_a_floating_ip_is_added_to_a_server_and_removed(
        self, api: Any, cloud: Any, network: Any, service: Service
    ) -> None:
        server = cloud.server()
        path = f"/servers/{server.uuid}/action"
        network.answers["ports_of_server"] = [{"id": "p", "fixed_ips": [{"ip_address": "10.0.0.3"}]}]
        add = {"addFloatingIp": {"address": "192.0.2.9"}}
        assert api.post(path, add, version="2.43").status == 202
        assert service.calls[-1][2]["body"] == {"floatingip": {"port_id": "p", "fixed_ip_address": "10.0.0.3"}}
        assert api.post(path, {"removeFloatingIp": {"address": "192.0.2.9"}}, version="2.43").status == 409
        service.answers["GET", "/v2.0/floatingips"] = {"floatingips": [floating("p")]}
        taken = api.post(path, add, version="2.43")
        assert (taken.status, taken.message) == (400, "All of the server's fixed addresses have a floating IP")
        assert api.post(path, {"removeFloatingIp": {"address": "192.0.2.9"}}, version="2.43").status == 202
        assert service.calls[-1][2]["body"] == {"floatingip": {"port_id": None}}
        assert api.post(path, add, version="2.44").status == 404


class TestSecurityGroups:
    @pytest.fixture
    def service(self, network: Any) -> Service:
        group: dict[str, Any] = {
            "id": GROUP,
            "name": "g",
            "description": None,
            "project_id": "project",
            "security_group_rules": [],
        }
        network.answers["forward"] = service = Service(
            {
                ("GET", "/v2.0/security-groups"): {"security_groups": [group]},
                ("GET", "/v2.0/security-groups/{group_id}"): {"security_group": group},
                ("POST", "/v2.0/security-groups"): {"security_group": group},
                ("DELETE", "/v2.0/security-groups/{group_id}"): errors.ServiceRefused("in use"),
                ("POST", "/v2.0/security-group-rules"): {
                    "security_group_rule": {
                        "id": FLOATING, "security_group_id": GROUP, "protocol": "tcp", "port_range_min": 1,
                        "port_range_max": 2, "remote_ip_prefix": "0.0.0.0/0", "remote_group_id": None,
                        "ethertype": "IPv4", "direction": "ingress",
                    }
                },
            }
        )  # fmt: skip
        return service

    @pytest.mark.usefixtures("service")
    def test_security_groups_are_made_and_refused(self, api: Any) -> None:
        body = {"security_group": {"name": "g", "description": "d"}}
        made = api.post("/os-security-groups", body, version=OLD).json["security_group"]
        assert made == {"id": GROUP, "name": "g", "description": "", "tenant_id": "project", "rules": []}
        in_use = api.delete(f"/os-security-groups/{GROUP}", version=OLD)
        assert (in_use.status, in_use.message) == (400, "in use")
        assert api.post("/os-security-groups", {"security_group": {"name": " "}}, version=OLD).status == 400
        assert api.get("/os-security-groups/1", version=OLD).status == 400

    @pytest.mark.parametrize(
        "wrong",
        [
            {"ip_protocol": "bad"},
            {"from_port": "x"},
            {"from_port": 0},
            {"to_port": 65536},
            {"from_port": 9, "to_port": 8},
            {"cidr": "nonsense"},
            {"parent_group_id": "1"},
        ],
    )
    def test_rules_are_made_and_bad_ones_refused(self, api: Any, service: Service, wrong: dict[str, Any]) -> None:
        rule = {"parent_group_id": GROUP, "ip_protocol": "tcp", "from_port": 1, "to_port": 2}
        made = api.post("/os-security-group-rules", {"security_group_rule": rule}, version=OLD)
        assert made.json["security_group_rule"]["ip_range"] == {"cidr": "0.0.0.0/0"}
        assert service.calls[-2][2]["body"]["security_group_rule"]["direction"] == "ingress"
        assert api.post("/os-security-group-rules", {"security_group_rule": rule | wrong}, version=OLD).status == 400


def test_networks_and_volumes_are_shown_in_the_old_form(api: Any, network: Any, volumes: Any) -> None:
    network.answers["list_networks"] = [{"id": NETWORK, "name": "n"}]
    assert api.get("/os-tenant-networks", version=OLD).json == {
        "networks": [{"id": NETWORK, "label": "n", "cidr": "None"}]
    }
    assert api.get("/os-networks", version=OLD).json["networks"][0]["label"] == "n"
    volume = {
        "id": IMAGE, "status": "available", "size": 1, "availability_zone": "nova", "name": "n", "description": None,
        "created_at": "2026-01-01T00:00:00.000000", "volume_type": "t", "snapshot_id": None, "metadata": {},
        "attachments": [],
    }  # fmt: skip
    volumes.answers["forward"] = Service({("POST", "/v3/volumes"): {"volume": volume}})
    made = api.post("/os-volumes", {"volume": {"size": "1", "display_name": "n"}}, version=OLD).json["volume"]
    assert (made["displayName"], made["attachments"], made["createdAt"]) == ("n", [{}], "2026-01-01T00:00:00Z")
    for size in ("", "x", 0, "0"):
        assert api.post("/os-volumes", {"volume": {"size": size}}, version=OLD).status == 400


def test_hosts_are_shown_until_2_42(admin: Any, api: Any, cloud: Any) -> None:
    cloud.host("host1", "cell1", vcpus_used=2)
    cloud.server(host="host1")
    assert admin.get("/os-hosts", version="2.42").json["hosts"] == [
        {"host_name": "host1", "service": "compute", "zone": "nova"}
    ]
    assert admin.get("/os-hosts?zone=other", version="2.42").json["hosts"] == []
    rows = [row["resource"] for row in admin.get("/os-hosts/host1", version="2.42").json["host"]]
    assert [row["project"] for row in rows] == ["(total)", "(used_now)", "(used_max)", "project"]
    assert rows[1]["cpu"] == 2
    assert admin.get("/os-hosts/none", version="2.42").status == 404
    disabled = admin.put("/os-hosts/host1", {"status": "disable"}, version="2.42")
    assert disabled.json == {"host": "host1", "status": "disabled"}
    assert admin.put("/os-hosts/host1", {"status": None}, version="2.42").status == 400
    assert admin.get("/os-hosts/host1/reboot", version="2.42").status == 501
    assert admin.get("/os-hosts/none/reboot", version="2.42").status == 404
    assert api.get("/os-hosts", version="2.42").status == 403
    assert admin.get("/os-hosts", version="2.43").status == 404


def test_usage_audits_have_not_run(admin: Any, api: Any, cloud: Any) -> None:
    cloud.host("host1", "cell1")
    log = admin.get("/os-instance_usage_audit_log/2026-01-15%2010:00:00").json["instance_usage_audit_log"]
    assert (log["period_beginning"], log["period_ending"]) == ("2025-12-01 00:00:00", "2026-01-01 00:00:00")
    assert log["hosts_not_run"] == ["host1"]
    assert admin.get("/os-instance_usage_audit_log/nonsense").status == 400
    # There is no month before.
    assert admin.get("/os-instance_usage_audit_log/0001-01-15%2010:00:00").status == 400
    assert api.get("/os-instance_usage_audit_log").status == 403
