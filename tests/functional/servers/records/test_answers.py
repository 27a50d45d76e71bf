"""Everything that can be read, read in every version in which its answer or its question changes, from a cloud that has it all.

Answers are held against their schemas (``[api] response_validation = error`` in all tests): one that differs is a 500.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.api.answers.parts import NEVER
from causeway.api.dispatch import Route
from causeway.model.migration import LIVE_MIGRATION, Migration
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from tests.functional.described import changes, parameters
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"hosts_per_cell": 1, "overrides": {"console": {"check_interval": 0.2}}}
pytestmark = pytest.mark.embedded("writes a migration that is under way into the database")


class Contents:
    """One of each: what is in the paths. Made with requests as users and administrators send them."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.ids: dict[str, str] = {}
        self._make_own()
        self._make_server()
        self._make_passed_on()

    def post(self, path: str, body: Any, version: str = "2.96") -> Any:
        answer = self.cloud.admin.compute.post(path, json=body, microversion=version)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def _make_own(self) -> None:
        """What needs no server."""
        flavor = {"name": "own", "id": "own", "ram": 64, "vcpus": 1, "disk": 1, "os-flavor-access:is_public": False}
        self.post("/flavors", {"flavor": flavor})
        self.post("/flavors/own/os-extra_specs", {"extra_specs": {"hw:cpu_policy": "shared"}})
        self.post("/flavors/own/action", {"addTenantAccess": {"tenant": self.cloud.admin.current_project_id}})
        self.post("/os-keypairs", {"keypair": {"name": "own"}}, "2.2")
        aggregate = self.post("/os-aggregates", {"aggregate": {"name": "own"}})["aggregate"]
        self.post(f"/os-aggregates/{aggregate['id']}/action", {"add_host": {"host": "cell2-host1"}})
        group = {"name": "own", "policy": "soft-affinity"}
        self.group = self.post("/os-server-groups", {"server_group": group})["server_group"]["id"]
        drain = {"name": "own", "scope": {"hosts": ["cell1-host1"]}}
        self.ids |= {
            "flavor_id": "own",
            "keypair_name": "own",
            "aggregate_id": str(aggregate["id"]),
            "group_id": self.group,
            "tenant_id": self.cloud.admin.current_project_id,
            "quota_class": "default",
            "before": "2026-01-01 00:00:00",
            "alias": "os-volumes",
            "version_id": "v2.1",
            "cell": "cell1",
            "host": "cell1-host1",
            "network_id": self.cloud.network_id,
            "image_id": self.cloud.image_id,
        }
        self._drain = drain

    def _make_server(self) -> None:
        cloud = self.cloud
        body = {
            "server": {
                "name": "own",
                "flavorRef": cloud.admin.compute.find_flavor("gen1.small").id,
                "imageRef": cloud.image_id,
                "networks": [{"uuid": cloud.network_id, "tag": "port"}],
                "key_name": "own",
                "metadata": {"key": "value"},
                "tags": ["tag"],
                "user_data": base64.b64encode(b"text").decode(),
            },
            "os:scheduler_hints": {"group": self.group},
        }
        made = self.post("/servers", body)["server"]
        server = cloud.wait(cloud.admin.compute.get_server(made["id"]), "ACTIVE")
        self.server = server.id
        volume = cloud.admin.block_storage.create_volume(size=1, name="own")
        cloud.admin.block_storage.wait_for_status(volume, "available")
        self.volume = volume.id
        self.post(f"/servers/{server.id}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume.id}})
        broken = dict(body["server"], flavorRef=cloud.flavor("too large", disk=1 << 20), tags=[], name="broken")
        failed = self.post("/servers", {"server": broken})["server"]["id"]
        until(lambda: cloud.admin.compute.get_server(failed), lambda found: found.status == "ERROR", "it to fail")
        port = cloud.admin.compute.get(f"/servers/{server.id}/os-interface").json()["interfaceAttachments"][0]
        console = {"remote_console": {"protocol": "serial", "type": "serial"}}
        url = self.post(f"/servers/{server.id}/remote-consoles", console)["remote_console"]["url"]
        actions = cloud.admin.compute.get(f"/servers/{server.id}/os-instance-actions").json()["instanceActions"]
        operations = cloud.admin.compute.get(f"/os-causeway/servers/{server.id}/operations?all=1").json()["operations"]
        drain = self.post("/os-causeway/drains", {"drain": self._drain})["drain"]
        self.ids |= {
            "server_id": server.id,
            "tag": "tag",
            "volume_id": volume.id,
            "port_id": port["port_id"],
            "network_label": "demo-net",
            "request_id": actions[-1]["request_id"],
            "operation_id": operations[0]["id"],
            "migration_id": str(self._migration()),
            "console_token": url.partition("token=")[2],
            "drain_id": drain["id"],
        }

    def _migration(self) -> int:
        """One that is under way for as long as the test."""
        self.migration = Migration(
            uuid=str(uuid.uuid4()),
            instance_uuid=self.server,
            migration_type=LIVE_MIGRATION,
            status=MigrationStatus.RUNNING,
            source_compute="cell1-host1",
            project_id=self.cloud.admin.current_project_id,
            user_id=self.cloud.admin.current_user_id,
        )
        with self.cloud.parts.api_database.write() as connection:
            migrations.insert_in(connection, self.migration)
        return migrations.get(self.cloud.parts.api_database, self.migration.uuid).id

    def _make_passed_on(self) -> None:
        """What other services have."""
        old = "2.1"
        self.post(f"/images/{self.cloud.image_id}/metadata", {"metadata": {"key": "value"}}, old)
        group = {"security_group": {"name": "own", "description": "d"}}
        made = self.post("/os-security-groups", group, old)["security_group"]
        self.security_group = made["id"]
        rule = {"parent_group_id": made["id"], "ip_protocol": "tcp", "from_port": 1, "to_port": 2}
        self.post("/os-security-group-rules", {"security_group_rule": rule}, old)
        self.post("/os-security-group-rules", {"security_group_rule": rule | {"group_id": made["id"]}}, old)
        network = self.cloud.admin.network
        outside = network.create_network(name="outside", is_router_external=True)
        network.create_subnet(network_id=outside.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False)
        router = next(iter(network.routers()), None)
        if router is None:
            router = network.create_router(name="router", external_gateway_info={"network_id": outside.id})
            inside = next(iter(network.subnets(network_id=self.cloud.network_id)))
            network.add_interface_to_router(router, subnet_id=inside.id)
        floating = self.post("/os-floating-ips", {"pool": "outside"}, old)["floating_ip"]
        self.post(f"/servers/{self.server}/action", {"addFloatingIp": {"address": floating["ip"]}}, old)
        snapshot = {"snapshot": {"volume_id": self.volume, "force": True}}
        self.ids |= {
            "floating_ip_id": floating["id"],
            "snapshot_id": self.post("/os-snapshots", snapshot, old)["snapshot"]["id"],
        }

    def path(self, route: Route, minor: int) -> str:
        ids = dict(self.ids)
        if route.path.startswith("/os-hypervisors/"):
            listed = self.cloud.admin.compute.get("/os-hypervisors", microversion=f"2.{minor}").json()["hypervisors"]
            found = listed[0]
            by_name = route.path.endswith(("/search", "/servers"))
            ids["hypervisor_id"] = found["hypervisor_hostname"] if by_name else str(found["id"])
        if "/os-security-groups/" in route.path:
            ids["group_id"] = self.security_group
        ids["key"] = "hw:cpu_policy" if "/flavors/" in route.path else "key"
        return re.sub(r"{(\w+)}", lambda name: ids[name[1]], route.path)

    def clean(self) -> None:
        with self.cloud.parts.api_database.write() as connection:
            migrations.delete_in(connection, self.migration.uuid)


@pytest.fixture
def contents(cloud: Cloud) -> Iterator[Contents]:
    found = Contents(cloud)
    yield found
    found.clean()


# Tokens are shown from here on.
_FIRST = {"/os-console-auth-tokens/{console_token}": 31}
# Lists that are so long that they have another page.
_PAGED = "?limit=1"


def test_everything_is_shown_in_every_version(cloud: Cloud, contents: Contents) -> None:
    read, wrong = 0, []
    for minor, routes in changes().items():
        for route in routes:
            if route.method != "GET" or route.handler.answer is NEVER:
                continue
            minor = max(minor, _FIRST.get(route.path, 1))
            path = contents.path(route, minor)
            for query in ("", _PAGED) if "limit" in parameters(route, minor) else ("",):
                read += 1
                answer = cloud.admin.compute.get(path + query, microversion=f"2.{minor}")
                if answer.status_code not in route.handler.statuses_at(minor):
                    wrong.append((path + query, minor, answer.status_code, answer.text))
    assert wrong == []
    assert read > 150
