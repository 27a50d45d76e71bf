"""What belongs to a server: metadata, tags, instance actions, volumes, ports, addresses."""

from __future__ import annotations

import uuid as uuids
from datetime import datetime, timedelta
from typing import Any

import pytest

from causeway import errors
from causeway.clients.volume import Volume
from causeway.model.block_device import BlockDevice
from causeway.model.instance import ActionEvent, Instance, InstanceAction
from causeway.model.network import FixedIp, Vif
from causeway.model.states import TaskState, VmState
from causeway.store.api import journal
from causeway.store.cell import actions, block_devices, instances

VOLUME = "33333333-2222-3333-4444-555555555555"
OTHER = "33333333-2222-3333-4444-666666666666"
DEFAULT, WEB = "11111111-aaaa-3333-4444-555555555555", "22222222-aaaa-3333-4444-555555555555"
GROUPS = {"default": DEFAULT, "web": WEB, "db": OTHER}
NAMES = {group: name for name, group in GROUPS.items()}
NETWORK = "22222222-2222-3333-4444-555555555555"
PORT = "55555555-2222-3333-4444-555555555555"


@pytest.fixture
def server(cloud: Any) -> Instance:
    cloud.host("host1")
    vif = Vif(PORT, "fa:16:3e:00:00:01", NETWORK, "demo-net", [FixedIp("10.0.0.5", OTHER)], active=True, tag="nic")
    return cloud.server(host="host1", node="host1", network_info=[vif], metadata={"a": "1"}, tags=["x"])


def set_states(cloud: Any, server: Instance, vm_state: VmState, task_state: TaskState | None = None) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=vm_state, task_state=task_state)


class TestMetadata:
    def test_read_and_changed(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/metadata"
        assert api.get(path).json == {"metadata": {"a": "1"}}
        assert api.post(path, {"metadata": {"b": "2"}}).json == {"metadata": {"b": "2"}}
        assert api.get(path).json == {"metadata": {"a": "1", "b": "2"}}
        assert api.put(f"{path}/c", {"meta": {"c": "3"}}).json == {"meta": {"c": "3"}}
        assert api.get(f"{path}/c").json == {"meta": {"c": "3"}}
        assert api.delete(f"{path}/a").status == 204
        assert api.put(path, {"metadata": {"only": "this"}}).json == {"metadata": {"only": "this"}}
        assert api.get(path).json == {"metadata": {"only": "this"}}
        assert api.get(f"{path}/a").fault == "itemNotFound"
        assert api.delete(f"{path}/a").fault == "itemNotFound"

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "", {"metadata": {"k": 1}}),
            ("POST", "", {"metadata": []}),
            ("POST", "", {}),
            ("PUT", "", {"metadata": {"": "v"}}),
            ("POST", "", {"metadata": {"k" * 256: "v"}}),
            ("PUT", "/k", {"meta": {}}),
            ("PUT", "/k", {"meta": {"other": "v"}}),
            ("PUT", "/k", {"meta": {"k": "v", "l": "w"}}),
            ("PUT", "/k", {"meta": {"k": None}}),
            ("POST", "", {"metadata": {"k": "v"}, "x": 1}),
        ],
    )
    def test_bad_metadata_is_refused(self, api: Any, server: Instance, method: str, path: str, body: Any) -> None:
        answer = api.call(method, f"/servers/{server.uuid}/metadata{path}", body)
        assert answer.fault == "badRequest", answer.text

    def test_metadata_is_limited_by_quota(self, api: Any, cloud: Any, server: Instance) -> None:
        cloud.option("quota", "metadata_items", 1)
        path = f"/servers/{server.uuid}/metadata"
        assert api.post(path, {"metadata": {"b": "2"}}).fault == "forbidden"
        assert api.put(path, {"metadata": {"b": "2"}}).status == 200

    def test_states_and_locks_refuse_changes_of_metadata(self, api: Any, cloud: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/metadata"
        set_states(cloud, server, VmState.RESIZED)
        assert api.post(path, {"metadata": {"b": "2"}}).fault == "conflictingRequest"
        assert api.delete(f"{path}/a").fault == "conflictingRequest"
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_PREP)
        assert api.post(path, {"metadata": {"b": "2"}}).status == 200
        instances.update(cloud.cell("cell1"), server.uuid, locked=True)
        assert api.post(path, {"metadata": {"b": "2"}}).fault == "conflictingRequest"


class TestTags:
    def test_read_and_changed(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/tags"
        assert api.get(path).json == {"tags": ["x"]}
        assert api.get(f"{path}/x").status == 204 and api.get(f"{path}/y").status == 404
        added = api.put(f"{path}/y")
        assert added.status == 201 and added.headers["location"].endswith(f"{path}/y")
        assert api.put(f"{path}/y").status == 204
        assert api.put(path, {"tags": ["b", "a", "b"]}).json == {"tags": ["a", "b"]}
        assert api.delete(f"{path}/a").status == 204 and api.delete(f"{path}/a").status == 404
        assert api.delete(path).status == 204
        assert api.get(path).json == {"tags": []}
        assert api.get(path, version="2.25").status == 404

    def test_bad_tags_are_refused(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/tags"
        for body in ({"tags": ["a,b"]}, {"tags": [""]}, {"tags": ["x" * 61]}, {"tags": "x"}, {"tags": [1]}, {}):
            assert api.put(path, body).fault == "badRequest"
        assert api.put(f"{path}/{'x' * 61}").fault == "badRequest"
        assert api.put(f"{path}/a,b").fault == "badRequest"
        assert api.put(path, {"tags": [str(n) for n in range(50)]}).status == 200
        assert api.put(f"{path}/one-more").fault == "badRequest"
        assert api.put(path, {"tags": [str(n) for n in range(51)]}).fault == "badRequest"

    def test_states_matter_and_locks_do_not(self, api: Any, cloud: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/tags"
        instances.update(cloud.cell("cell1"), server.uuid, locked=True)
        assert api.put(f"{path}/y").status == 201
        set_states(cloud, server, VmState.RESIZED)
        assert api.put(f"{path}/z").fault == "conflictingRequest"
        assert api.delete(path).fault == "conflictingRequest"


@pytest.fixture
def history(cloud: Any, server: Instance) -> Instance:
    """Three actions; the last one failed on host1."""
    start = datetime(2026, 1, 1)
    for number, name in enumerate(("create", "stop", "resize")):
        moment = start + timedelta(hours=number)
        action = InstanceAction(name, server.uuid, f"req-{number}", "user", "project", moment, moment)
        actions.start(cloud.cell("cell1"), action)
    event = ActionEvent("conductor_migrate_server", start, start, "Error", "Traceback", "host1", "No valid host")
    actions.record_event(cloud.cell("cell1"), server.uuid, "req-2", event)
    return server


class TestHistory:
    def test_actions_are_listed_newest_first(self, api: Any, history: Instance) -> None:
        found = api.get(f"/servers/{history.uuid}/os-instance-actions").json["instanceActions"]
        assert [action["action"] for action in found] == ["resize", "stop", "create"]
        assert found[0]["message"] == "Error" and "updated_at" in found[0]
        assert found[1]["start_time"] == "2026-01-01T01:00:00.000000"
        old = api.get(f"/servers/{history.uuid}/os-instance-actions", version="2.57").json
        assert "updated_at" not in old["instanceActions"][0]

    def test_actions_are_listed_in_pages(self, api: Any, history: Instance) -> None:
        path = f"/servers/{history.uuid}/os-instance-actions"
        first = api.get(f"{path}?limit=2").json
        assert len(first["instanceActions"]) == 2 and first["links"][0]["rel"] == "next"
        assert first["links"][0]["href"].endswith("limit=2&marker=req-1")
        rest = api.get(f"{path}?limit=2&marker=req-1").json
        assert [action["action"] for action in rest["instanceActions"]] == ["create"] and "links" not in rest
        since = api.get(f"{path}?changes-since=2026-01-01T00:30:00Z&changes-before=2026-01-01T01:30:00Z").json
        assert [action["action"] for action in since["instanceActions"]] == ["stop"]

    @pytest.mark.parametrize(
        "query",
        [
            "limit=x",
            "marker=unknown",
            "changes-since=x",
            "nonsense=1",
            "changes-since=2026-01-02&changes-before=2026-01-01",
        ],
    )
    def test_bad_queries_are_refused(self, api: Any, history: Instance, query: str) -> None:
        assert api.get(f"/servers/{history.uuid}/os-instance-actions?{query}").fault == "badRequest"

    def test_events_are_shown_by_version_and_policy(self, api: Any, admin: Any, history: Instance) -> None:
        path = f"/servers/{history.uuid}/os-instance-actions/req-2"
        assert "events" not in api.get(path, version="2.50").json["instanceAction"]
        (event,) = api.get(path).json["instanceAction"]["events"]
        assert event.keys() == {"event", "start_time", "finish_time", "result", "hostId"}
        (event,) = admin.get(path).json["instanceAction"]["events"]
        assert event["traceback"] == "Traceback" and event["host"] == "host1" and event["details"] == "No valid host"
        (event,) = admin.get(path, version="2.50").json["instanceAction"]["events"]
        assert event.keys() == {"event", "start_time", "finish_time", "result", "traceback"}
        assert api.get(f"/servers/{history.uuid}/os-instance-actions/req-9").status == 404

    def test_actions_of_a_deleted_server_are_listed_from_2_21(self, api: Any, cloud: Any, history: Instance) -> None:
        instances.soft_delete(cloud.cell("cell1"), history.uuid)
        path = f"/servers/{history.uuid}/os-instance-actions"
        assert len(api.get(path, version="2.21").json["instanceActions"]) == 3
        assert api.get(path, version="2.20").status == 404
        assert api.by("other:elsewhere").get(path).status == 404


def attach(cloud: Any, server: Instance, volume_id: str = VOLUME, **fields: Any) -> BlockDevice:
    device = BlockDevice(
        str(uuids.uuid4()), server.uuid, "volume", "volume", volume_id=volume_id, device_name="/dev/vdb", **fields
    )
    block_devices.add(cloud.cell("cell1"), device)
    return device


class TestVolumes:
    @pytest.fixture(autouse=True)
    def volume(self, volumes: Any, conductor: Any) -> None:
        volumes.answers["show"] = lambda _context, volume_id: Volume(volume_id, "available", 1)
        conductor.answers["add_volume"] = lambda _context, **given: BlockDevice(
            "d0000000-0000-0000-0000-000000000001",
            given["instance_uuid"],
            "volume",
            "volume",
            volume_id=given["volume_id"],
            device_name=given["device"] or "/dev/vdb",
            tag=given["tag"],
            delete_on_termination=given["delete_on_termination"],
            attachment_id="e0000000-0000-0000-0000-000000000001",
        )

    def test_volumes_are_listed_and_shown(self, api: Any, cloud: Any, server: Instance) -> None:
        device = attach(cloud, server, tag="data", delete_on_termination=True)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        (old,) = api.get(path, version="2.1").json["volumeAttachments"]
        assert old == {"id": VOLUME, "volumeId": VOLUME, "serverId": server.uuid, "device": "/dev/vdb"}
        new = api.get(f"{path}/{VOLUME}", version="2.89").json["volumeAttachment"]
        assert new == {
            "volumeId": VOLUME,
            "serverId": server.uuid,
            "device": "/dev/vdb",
            "tag": "data",
            "delete_on_termination": True,
            "attachment_id": None,
            "bdm_uuid": device.uuid,
        }
        assert api.get(f"{path}?limit=1&offset=1").json == {"volumeAttachments": []}
        assert api.get(f"{path}/{OTHER}").status == 404

    def test_a_volume_is_attached(self, api: Any, conductor: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/os-volume_attachments"
        wanted = {"volumeId": VOLUME, "device": "/dev/vdc", "tag": "data", "delete_on_termination": True}
        answer = api.post(path, {"volumeAttachment": wanted}, version="2.96")
        assert answer.status == 200 and answer.json["volumeAttachment"]["device"] == "/dev/vdc"
        answer = api.post(path, {"volumeAttachment": {"volumeId": OTHER}}, version="2.101")
        assert (answer.status, answer.text) == (202, "")
        assert len(conductor.calls) == 2

    @pytest.mark.parametrize(
        ("version", "more"),
        [
            ("2.1", {}),
            ("2.69", {}),
            ("2.70", {"tag": None}),
            ("2.78", {"tag": None}),
            ("2.79", {"tag": None, "delete_on_termination": False}),
            ("2.88", {"tag": None, "delete_on_termination": False}),
            ("2.89", {"tag": None, "delete_on_termination": False}),
            ("2.100", {"tag": None, "delete_on_termination": False}),
        ],
    )
    @pytest.mark.parametrize("device", ["/dev/vdc", None])
    def test_an_attach_answers_what_its_version_has(
        self, api: Any, conductor: Any, server: Instance, version: str, more: Any, device: str | None
    ) -> None:
        """Not what is listed: the id stays when 2.89 takes it from there, and the device is named even if there is none."""
        conductor.answers["add_volume"] = lambda *_, **given: BlockDevice(
            str(uuids.uuid4()), server.uuid, "volume", "volume", volume_id=given["volume_id"], device_name=device
        )
        path = f"/servers/{server.uuid}/os-volume_attachments"
        answer = api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}, version=version)
        base = {"id": VOLUME, "serverId": server.uuid, "volumeId": VOLUME, "device": device}
        assert answer.json == {"volumeAttachment": base | more}

    @pytest.mark.parametrize(
        ("version", "keys"),
        [
            ("2.69", {"id"}),
            ("2.70", {"id", "tag"}),
            ("2.79", {"id", "tag", "delete_on_termination"}),
            ("2.88", {"id", "tag", "delete_on_termination"}),
            ("2.89", {"tag", "delete_on_termination", "attachment_id", "bdm_uuid"}),
        ],
    )
    def test_a_volume_shows_what_its_version_has(
        self, api: Any, cloud: Any, server: Instance, version: str, keys: set[str]
    ) -> None:
        attach(cloud, server)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        (listed,) = api.get(path, version=version).json["volumeAttachments"]
        assert listed == api.get(f"{path}/{VOLUME}", version=version).json["volumeAttachment"]
        assert listed.keys() == {"volumeId", "serverId", "device"} | keys

    def test_a_volume_is_attached_to_a_resized_server(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.RESIZED)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}).status == 202

    def test_a_volume_is_attached_to_an_offloaded_server_from_2_20(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        """There is no host to send it to: the volume is reserved until the server is restored."""
        instances.update(cloud.cell("cell1"), server.uuid, vm_state=VmState.SHELVED_OFFLOADED, host=None)
        path, wanted = f"/servers/{server.uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": VOLUME}}
        assert api.post(path, wanted, version="2.20").status == 200
        assert api.post(path, wanted, version="2.19").status == 409

    def test_a_swap_is_for_volumes_that_block_storage_moves(
        self, admin: Any, cloud: Any, server: Instance, volumes: Any
    ) -> None:
        """What else is checked: tests/functional/servers/volumes/test_volume_swap.py."""
        path, wanted = f"/servers/{server.uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": OTHER}}
        assert admin.put(f"{path}/{VOLUME}", wanted, version="2.85").status == 404
        attach(cloud, server)
        assert admin.put(f"{path}/{VOLUME}", wanted, version="2.84").status == 409
        volumes.answers["show"] = errors.VolumeNotFound("Volume could not be found.")
        assert admin.put(f"{path}/{VOLUME}", wanted, version="2.84").status == 404

    @pytest.mark.parametrize(
        ("volume", "status"),
        [
            (Volume(VOLUME, "in-use", 1), 400),
            (Volume(VOLUME, "error", 1), 400),
            (errors.VolumeNotFound("Volume could not be found."), 404),
            (errors.ServiceFailed("The volume service does not answer."), 503),
        ],
    )
    def test_volumes_that_do_not_do(
        self, api: Any, volumes: Any, conductor: Any, server: Instance, volume: Any, status: int
    ) -> None:
        volumes.answers["show"] = volume
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}).status == status
        assert conductor.calls == []

    @pytest.mark.parametrize(
        ("wanted", "version"),
        [
            ({}, "2.96"),
            ({"volumeId": "x"}, "2.96"),
            ({"volumeId": VOLUME, "device": "vdb"}, "2.96"),
            ({"volumeId": VOLUME, "tag": "t"}, "2.48"),
            ({"volumeId": VOLUME, "delete_on_termination": True}, "2.78"),
            ({"volumeId": VOLUME, "tag": "a/b"}, "2.96"),
        ],
    )
    def test_bad_attachments_are_refused(self, api: Any, server: Instance, wanted: Any, version: str) -> None:
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": wanted}, version=version).fault == "badRequest"

    def test_not_twice(self, api: Any, cloud: Any, server: Instance) -> None:
        attach(cloud, server)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.post(path, {"volumeAttachment": {"volumeId": VOLUME}}).fault == "badRequest"

    def test_a_volume_is_detached_by_an_operation(self, api: Any, cloud: Any, conductor: Any, server: Instance) -> None:
        attach(cloud, server)
        attach(cloud, server, OTHER, boot_index=0)
        path = f"/servers/{server.uuid}/os-volume_attachments"
        assert api.delete(f"{path}/{OTHER}").fault == "badRequest"
        assert api.delete(f"{path}/{PORT}").fault == "itemNotFound"
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_PREP)
        assert api.delete(f"{path}/{VOLUME}").fault == "conflictingRequest"
        set_states(cloud, server, VmState.RESIZED)
        assert api.delete(f"{path}/{VOLUME}").status == 202
        assert [call[0] for call in conductor.calls] == ["run_move"]
        (operation,) = journal.of_server(cloud.services.api, server.uuid)
        assert (operation.recipe, operation.resource_id, operation.pivoted) == ("detach_volume", VOLUME, True)

    def test_delete_on_termination_can_be_changed(self, api: Any, cloud: Any, server: Instance) -> None:
        attach(cloud, server)
        path = f"/servers/{server.uuid}/os-volume_attachments/{VOLUME}"
        wanted = {"volumeId": VOLUME, "delete_on_termination": True}
        assert api.put(path, {"volumeAttachment": wanted}).status == 202
        assert api.get(path).json["volumeAttachment"]["delete_on_termination"] is True
        assert api.put(path, {"volumeAttachment": wanted | {"tag": "other"}}).fault == "badRequest"
        assert api.put(path, {"volumeAttachment": {"volumeId": OTHER}}).fault == "forbidden"


class TestInterfaces:
    def test_ports_are_listed_and_shown(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/os-interface"
        port = {
            "net_id": NETWORK,
            "port_id": PORT,
            "mac_addr": "fa:16:3e:00:00:01",
            "port_state": "ACTIVE",
            "fixed_ips": [{"subnet_id": OTHER, "ip_address": "10.0.0.5"}],
        }
        assert api.get(path, version="2.69").json == {"interfaceAttachments": [port]}
        assert api.get(f"{path}/{PORT}").json == {"interfaceAttachment": port | {"tag": "nic"}}
        assert api.get(f"{path}/{NETWORK}").status == 404

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


class TestSmallThings:
    def test_addresses_are_listed_by_network(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/ips"
        listed = [{"version": 4, "addr": "10.0.0.5"}]
        assert api.get(path).json == {"addresses": {"demo-net": listed}}
        assert api.get(f"{path}/demo-net").json == {"demo-net": listed}
        assert api.get(f"{path}/other").status == 404

    def test_topology_and_password_are_shown(self, api: Any, server: Instance) -> None:
        assert api.get(f"/servers/{server.uuid}/topology").json == {"nodes": [], "pagesize_kb": None}
        assert api.get(f"/servers/{server.uuid}/topology", version="2.77").status == 404
        assert api.get(f"/servers/{server.uuid}/os-server-password").json == {"password": ""}
        assert api.delete(f"/servers/{server.uuid}/os-server-password").status == 204


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

    def keep(self, cloud: Any, server: Instance, *groups: list[str] | None, **changes: Any) -> None:
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
        # Twice, as in the field: port by port.
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

    def test_what_the_former_release_wrote_shows_what_was_asked_for(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        self.keep(cloud, server, None)
        assert self.shown(api, server) == ["asked"]
        self.keep(cloud, server, ["web"], None)
        assert self.shown(api, server) == ["asked"]

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
