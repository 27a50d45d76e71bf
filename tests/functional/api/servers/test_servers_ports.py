"""Ports and security groups of a server: listed, attached and detached."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import VmState
from causeway.store.cell import instances
from tests.functional.api.servers.server_parts import (
    DEFAULT,
    GROUPS,
    NAMES,
    NETWORK,
    OTHER,
    PORT,
    WEB,
    server_with_parts,
    set_states,
)


@pytest.fixture
def server(cloud: Any) -> Instance:
    return server_with_parts(cloud)


def as_shown(server: Instance, **fields: Any) -> dict[str, Any]:
    """The server's port as the network service has it."""
    return {
        "id": PORT,
        "network_id": NETWORK,
        "mac_address": "fa:16:3e:00:00:01",
        "status": "ACTIVE",
        "device_id": server.uuid,
        "fixed_ips": [{"subnet_id": OTHER, "ip_address": "10.0.0.5"}],
        **fields,
    }


class TestInterfaces:
    def test_ports_are_listed_and_shown(self, api: Any, network: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/os-interface"
        network.answers |= {"ports_of_server": [as_shown(server)], "show_port": as_shown(server)}
        port = {
            "net_id": NETWORK,
            "port_id": PORT,
            "mac_addr": "fa:16:3e:00:00:01",
            "port_state": "ACTIVE",
            "fixed_ips": [{"subnet_id": OTHER, "ip_address": "10.0.0.5"}],
        }
        assert api.get(path, version="2.69").json == {"interfaceAttachments": [port]}
        assert api.get(f"{path}/{PORT}").json == {"interfaceAttachment": port | {"tag": "nic"}}

    def test_a_port_is_as_the_network_service_has_it_by_now(self, api: Any, network: Any, server: Instance) -> None:
        """The record has it as it was when the server got it: a port comes up afterwards, and may get other addresses."""
        path = f"/servers/{server.uuid}/os-interface"
        port = as_shown(server, status="BUILD", fixed_ips=[{"subnet_id": OTHER, "ip_address": "10.0.0.6"}])
        network.answers |= {"ports_of_server": [port], "show_port": port}
        [listed], shown = api.get(path).json["interfaceAttachments"], api.get(f"{path}/{PORT}").json
        assert (listed["port_state"], listed["fixed_ips"][0]["ip_address"]) == ("BUILD", "10.0.0.6")
        assert shown == {"interfaceAttachment": listed}

    def test_a_port_of_another_server_or_none_is_not_shown(self, api: Any, network: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/os-interface/{PORT}"
        network.answers["show_port"] = as_shown(server, device_id=OTHER)
        assert api.get(path).fault == "itemNotFound"
        network.answers["show_port"] = errors.PortNotFound("no such port")
        assert api.get(path).fault == "itemNotFound"

    def test_ports_are_attached_and_detached(
        self, api: Any, cloud: Any, conductor: Any, network: Any, server: Instance
    ) -> None:
        network.answers["validate_networks"] = lambda _context, asked, *_given, **_more: asked
        conductor.answers["add_port"] = lambda _context, **_given: Vif(OTHER, "fa:16:3e:00:00:02", NETWORK)
        path = f"/servers/{server.uuid}/os-interface"
        wanted = {"net_id": NETWORK, "fixed_ips": [{"ip_address": "10.0.0.9"}]}
        answer = api.post(path, {"interfaceAttachment": wanted})
        assert answer.status == 200 and answer.json["interfaceAttachment"]["port_id"] == OTHER
        assert conductor.calls[0][1]["requested"].fixed_ip == "10.0.0.9"
        assert api.delete(f"{path}/{PORT}").status == 202
        assert api.delete(f"{path}/{OTHER}").status == 404
        set_states(cloud, server, VmState.RESIZED)
        assert api.post(path, {"interfaceAttachment": {}}).fault == "conflictingRequest"
        assert api.delete(f"{path}/{PORT}").fault == "conflictingRequest"

    @pytest.mark.parametrize(
        "wanted",
        [
            {"net_id": NETWORK, "port_id": PORT},
            {"fixed_ips": [{"ip_address": "10.0.0.9"}]},
            {"net_id": "x"},
            {"x": 1},
            {"net_id": NETWORK, "fixed_ips": []},
            {"net_id": NETWORK, "fixed_ips": [{"ip_address": "x"}]},
            None,
            [],
        ],
    )
    def test_bad_ports_are_refused(self, api: Any, server: Instance, wanted: Any) -> None:
        path = f"/servers/{server.uuid}/os-interface"
        assert api.post(path, {"interfaceAttachment": wanted}).fault == "badRequest"


def rule_of(group: str) -> dict[str, Any]:
    """Lets members of the other group in."""
    return {
        "id": OTHER, "security_group_id": group, "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp",
        "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": None, "remote_group_id": WEB,
    }  # fmt: skip


class TestSecurityGroups:
    @pytest.fixture(autouse=True)
    def groups(self, network: Any) -> None:
        network.answers["security_group_ids"] = lambda _context, _project, names: [GROUPS[name] for name in names]
        network.answers["ports_of_server"] = [{"id": PORT, "security_groups": [DEFAULT]}]
        network.answers["list_security_groups"] = lambda _context, ids: [
            {
                "id": group,
                "name": NAMES[group],
                "description": "",
                "project_id": "project",
                "security_group_rules": [rule_of(group)],
            }
            for group in sorted(ids)
        ]

    @pytest.fixture(autouse=True)
    def ports(self, network: Any) -> dict[str, list[str]]:
        """The groups of the server's only port, as the network service has them."""
        groups = {PORT: [DEFAULT]}

        def change(_context: Any, port: dict[str, Any], wanted: Any) -> dict[str, Any]:
            changed = {**port, **(wanted(port) or {})}
            groups[port["id"]] = changed["security_groups"]
            return changed

        network.answers["ports_of_server"] = lambda *_: [{"id": PORT, "security_groups": list(groups[PORT])}]
        network.answers["change_port"] = change
        network.answers["group_names"] = lambda ports: {
            port["id"]: [NAMES[each] for each in port["security_groups"]] for port in ports
        }
        return groups

    def shown(self, api: Any, server: Instance) -> list[str]:
        """Alike in every view."""
        path = f"/servers/{server.uuid}"
        (listed,) = api.get("/servers/detail").json["servers"]
        shown = api.get(path).json["server"]
        changed = api.put(path, {"server": {"name": shown["name"]}}, version="2.75").json["server"]
        found = [one.get("security_groups", []) for one in (shown, listed, changed)]
        assert found[0] == found[1] == found[2]
        return [group["name"] for group in found[0]]

    def keep(self, cloud: Any, server: Instance, *groups: list[str], **changes: Any) -> None:
        """Its record: ports with these groups."""
        vifs = [
            Vif(f"{PORT[:-1]}{number}", "fa:16:3e:00:00:01", "net", security_groups=names)
            for number, names in enumerate(groups)
        ]
        instances.update(cloud.cell("cell1"), server.uuid, network_info=vifs, security_groups=["asked"], **changes)

    def test_shown_are_those_of_the_ports_not_those_that_were_asked_for(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        self.keep(cloud, server, ["web"], ["web", "db"], [])
        # Twice, as in Nova: port by port.
        assert self.shown(api, server) == ["web", "web", "db"]
        self.keep(cloud, server, [])
        assert self.shown(api, server) == []
        assert "security_groups" not in api.get(f"/servers/{server.uuid}").json["server"]

    def test_a_server_without_ports_has_none_once_it_is_built(self, api: Any, cloud: Any, server: Instance) -> None:
        self.keep(cloud, server, vm_state=VmState.BUILDING)
        assert self.shown(api, server) == ["asked"]
        self.keep(cloud, server, vm_state=VmState.ACTIVE)
        assert self.shown(api, server) == []
        self.keep(cloud, server, vm_state=VmState.ERROR)
        assert self.shown(api, server) == []

    def test_while_it_is_built_its_ports_show_as_soon_as_they_are_there(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        self.keep(cloud, server, ["web"], vm_state=VmState.BUILDING)
        assert self.shown(api, server) == ["web"]

    def test_groups_of_the_ports_are_shown_with_their_rules(self, api: Any, server: Instance) -> None:
        (group,) = api.get(f"/servers/{server.uuid}/os-security-groups").json["security_groups"]
        assert group == {
            "id": DEFAULT,
            "name": "default",
            "description": "",
            "tenant_id": "project",
            "rules": [
                {
                    "id": OTHER,
                    "parent_group_id": DEFAULT,
                    "ip_protocol": "tcp",
                    "from_port": 22,
                    "to_port": 22,
                    "group": {"name": "web", "tenant_id": "project"},
                    "ip_range": {},
                }
            ],
        }

    def test_groups_are_added_and_removed(
        self, api: Any, cloud: Any, network: Any, server: Instance, ports: dict[str, list[str]]
    ) -> None:
        path, vif = f"/servers/{server.uuid}/action", Vif(PORT, "fa:16:3e:00:00:01", "net")
        instances.update(cloud.cell("cell1"), server.uuid, network_info=[vif], security_groups=[])
        assert api.post(path, {"addSecurityGroup": {"name": "web"}}).status == 202
        assert ports == {PORT: [DEFAULT, WEB]}
        assert self.shown(api, server) == ["default", "web"]
        assert instances.get(cloud.cell("cell1"), server.uuid).security_groups == ["web"]
        assert api.post(path, {"addSecurityGroup": {"name": "web"}}).status == 202
        assert ports == {PORT: [DEFAULT, WEB]}
        assert api.post(path, {"removeSecurityGroup": {"name": "db"}}).status == 404
        assert api.post(path, {"removeSecurityGroup": {"name": "default"}}).status == 202
        assert ports == {PORT: [WEB]} and self.shown(api, server) == ["web"]
        network.answers["ports_of_server"] = []
        assert api.post(path, {"addSecurityGroup": {"name": "web"}}).status == 404
        network.answers["security_group_ids"] = errors.BadRequest("Security group nope not found.")
        assert api.post(path, {"addSecurityGroup": {"name": "nope"}}).status == 404
        assert api.post(path, {"addSecurityGroup": {"name": ""}}).status == 400
