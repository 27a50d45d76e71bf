"""Actions on servers, their deletion and update: states, records, refusals. Moves are only asked for here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from oslo_policy import policy

from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.moves import requests as moves
from causeway.policy import CROSS_CELL_RESIZE
from causeway.store.api import build_requests, flavors, journal, mappings, migrations
from causeway.store.cell import actions, hosts, instances
from causeway.store.database import utcnow

MISSING = "b0000000-0000-0000-0000-000000000000"


def act(caller: Any, server: Instance | str, name: str, value: Any = None, **options: Any) -> Any:
    uuid = server if isinstance(server, str) else server.uuid
    return caller.post(f"/servers/{uuid}/action", {name: value}, **options)


def reread(cloud: Any, server: Instance, cell: str = "cell1") -> Instance:
    return instances.get(cloud.cell(cell), server.uuid)


def recorded(cloud: Any, server: Instance) -> list[str]:
    return [action.action for action in actions.of_instance(cloud.cell("cell1"), server.uuid)]


@pytest.fixture
def server(cloud: Any) -> Instance:
    """A running server on host1."""
    cloud.host("host1")
    return cloud.server(host="host1", node="host1")


def set_states(cloud: Any, server: Instance, vm_state: VmState, task_state: TaskState | None = None) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=vm_state, task_state=task_state)


class TestPower:
    @pytest.mark.parametrize(
        ("name", "value", "vm_state", "task", "action", "method"),
        [
            ("os-start", None, VmState.STOPPED, TaskState.POWERING_ON, "start", "start_instance"),
            ("os-stop", None, VmState.ACTIVE, TaskState.POWERING_OFF, "stop", "stop_instance"),
            ("os-stop", None, VmState.ERROR, TaskState.POWERING_OFF, "stop", "stop_instance"),
            ("reboot", {"type": "SOFT"}, VmState.ACTIVE, TaskState.REBOOTING, "reboot", "reboot_instance"),
            ("reboot", {"type": "Hard"}, VmState.ERROR, TaskState.REBOOTING_HARD, "reboot", "reboot_instance"),
        ],
    )
    def test_accepted(
        self,
        api: Any,
        cloud: Any,
        conductor: Any,
        server: Instance,
        name: str,
        value: Any,
        vm_state: VmState,
        task: TaskState,
        action: str,
        method: str,
    ) -> None:
        set_states(cloud, server, vm_state)
        answer = act(api, server, name, value)
        assert (answer.status, answer.text) == (202, "")
        assert reread(cloud, server).task_state == task
        assert recorded(cloud, server) == [action]
        assert conductor.calls[0][0] == method

    @pytest.mark.parametrize("name", ["os-start", "os-stop", "reboot", "resize", "migrate"])
    @pytest.mark.parametrize("vm_state", [VmState.RESIZED, VmState.BUILDING, VmState.SHELVED])
    def test_wrong_states(
        self, admin: Any, cloud: Any, conductor: Any, server: Instance, name: str, vm_state: VmState
    ) -> None:
        set_states(cloud, server, vm_state)
        value = {"reboot": {"type": "HARD"}, "resize": {"flavorRef": "1"}}.get(name)
        answer = act(admin, server, name, value)
        assert answer.fault == "conflictingRequest"
        assert answer.message == (
            f"Cannot '{name.removeprefix('os-')}' instance {server.uuid} while it is in vm_state {vm_state.value}"
        )
        assert conductor.calls == [] and recorded(cloud, server) == []

    def test_busy(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_PREP)
        assert "task_state resize_prep" in act(api, server, "os-stop").message

    def test_a_hard_reboot_breaks_into_a_soft_one(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.REBOOTING)
        assert act(api, server, "reboot", {"type": "SOFT"}).status == 409
        assert act(api, server, "reboot", {"type": "HARD"}).status == 202

    def test_a_request_that_came_second(
        self, api: Any, cloud: Any, conductor: Any, server: Instance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both passed the check of states; only one gets the server."""
        from causeway.api.servers import loading

        begin = loading.begin

        def begin_late(*arguments: Any, **named: Any) -> None:
            instances.update(cloud.cell("cell1"), server.uuid, task_state=TaskState.RESIZE_PREP)
            begin(*arguments, **named)

        monkeypatch.setattr(loading, "begin", begin_late)
        assert act(api, server, "os-stop").fault == "conflictingRequest"
        assert conductor.calls == [] and recorded(cloud, server) == []

    def test_without_a_host(self, api: Any, cloud: Any) -> None:
        assert act(api, cloud.server(), "os-stop").status == 409

    def test_a_server_without_a_cell(self, api: Any, cloud: Any) -> None:
        uuid = make_build_request(cloud)
        for name in ("os-stop", "lock", "confirmResize"):
            assert act(api, uuid, name).status == 409


def make_build_request(cloud: Any) -> str:
    uuid = "c0000000-0000-0000-0000-000000000001"
    instance = Instance(uuid, "project", "user", "waiting", Flavor("1", "f", 1, 1, 1), created_at=utcnow())
    with cloud.services.api.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping(uuid, "project", "user", utcnow()))
        mappings.save_spec_in(connection, uuid, {})
        request = build_requests.BuildRequest(uuid, "project", utcnow(), instance)
        build_requests.insert_in(connection, request)
    return uuid


class TestEveryAction:
    @pytest.mark.parametrize(
        "sent",
        [
            None,
            [],
            "x",
            7,
            {},
            {"nonsense": None},
            {"os-start": None, "os-stop": None},
            {"reboot": None},
            {"reboot": {}},
            {"reboot": {"type": "WARM"}},
            {"reboot": {"type": ["HARD"]}},
            {"resize": {}},
            {"resize": None},
            {"resize": {"flavorRef": {}}},
            {"resize": {"flavorRef": "2", "nonsense": 1}},
            {"migrate": {"host": 7}},
            {"migrate": {"host": ""}},
            {"migrate": "x"},
            {"lock": {"locked_reason": ""}},
            {"lock": {"locked_reason": "x" * 256}},
            {"lock": {"x": 1}},
            {"os-resetState": {}},
            {"os-resetState": {"state": "paused"}},
            {"os-resetState": None},
            {"os-getConsoleOutput": {"length": "x"}},
            {"os-getConsoleOutput": {"length": 1.5}},
            {"os-getConsoleOutput": []},
        ],
    )
    def test_malformed_bodies(self, admin: Any, conductor: Any, server: Instance, sent: Any) -> None:
        answer = admin.call("POST", f"/servers/{server.uuid}/action", sent)
        assert answer.fault == "badRequest", answer.text
        assert conductor.calls == []

    @pytest.mark.parametrize(
        "name", ["os-start", "os-stop", "lock", "unlock", "confirmResize", "revertResize", "forceDelete"]
    )
    def test_unknown_servers(self, api: Any, name: str) -> None:
        assert act(api, MISSING, name).fault == "itemNotFound"
        assert act(api, "nonsense", name).fault == "itemNotFound"

    @pytest.mark.parametrize("name", ["os-resetState", "migrate"])
    def test_what_members_may_not(self, api: Any, server: Instance, name: str) -> None:
        answer = act(api, server, name, {"state": "active"} if name == "os-resetState" else None)
        assert answer.fault == "forbidden"

    @pytest.mark.parametrize(
        ("name", "value"),
        [("os-stop", None), ("reboot", {"type": "HARD"}), ("resize", {"flavorRef": "2"}), ("forceDelete", None)],
    )
    def test_locked(self, api: Any, cloud: Any, server: Instance, name: str, value: Any) -> None:
        flavors.create(cloud.services.api, Flavor("2", "two", 1, 512, 1))
        instances.update(cloud.cell("cell1"), server.uuid, locked=True, locked_by="owner")
        answer = act(api, server, name, value)
        assert answer.fault == "conflictingRequest" and "is locked" in answer.message

    def test_what_other_clouds_have(self, api: Any, server: Instance) -> None:
        answer = act(api, server, "rescue")
        assert answer.fault == "notImplemented" and "rescue" in answer.message
        assert act(api, server, "addFloatingIp", {}, version="2.44").status == 404


class TestLock:
    def test_with_a_reason(self, api: Any, cloud: Any, server: Instance) -> None:
        assert act(api, server, "lock", {"locked_reason": "why"}).status == 202
        shown = api.get(f"/servers/{server.uuid}").json["server"]
        assert shown["locked"] is True and shown["locked_reason"] == "why"
        assert act(api, server, "unlock").status == 202
        assert reread(cloud, server).locked is False and reread(cloud, server).locked_reason is None
        assert recorded(cloud, server) == ["unlock", "lock"]

    def test_an_administrators_lock(self, api: Any, admin: Any, cloud: Any, server: Instance) -> None:
        assert act(admin, server, "lock").status == 202
        assert act(api, server, "lock").status == 202
        assert act(api, server, "unlock").fault == "forbidden"
        assert reread(cloud, server).locked_by == "admin"
        assert act(admin, server, "unlock").status == 202

    def test_reset_state(self, admin: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_MIGRATING)
        assert act(admin, server, "os-resetState", {"state": "error"}).status == 202
        after = reread(cloud, server)
        assert (after.vm_state, after.task_state, after.host) == (VmState.ERROR, None, "host1")

    def test_console(self, api: Any, cloud: Any, conductor: Any, server: Instance) -> None:
        conductor.answers["get_console_output"] = "login:"
        assert act(api, server, "os-getConsoleOutput", {"length": "5"}).json == {"output": "login:"}
        assert conductor.calls[0][1]["length"] == 5
        assert act(api, server, "os-getConsoleOutput", {"length": -1}).status == 200
        assert conductor.calls[1][1]["length"] is None
        assert act(api, server, "os-getConsoleOutput", {}).status == 200
        assert act(api, cloud.server(), "os-getConsoleOutput", {}).status == 409


class TestDelete:
    def test_whatever_it_does(self, api: Any, cloud: Any, conductor: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_MIGRATING)
        assert api.delete(f"/servers/{server.uuid}").status == 204
        assert reread(cloud, server).task_state == TaskState.DELETING
        assert recorded(cloud, server) == ["delete"]
        assert mappings.get(cloud.services.api, server.uuid).queued_for_delete
        assert [call[0] for call in conductor.calls] == ["run_move"]
        (move,) = journal.of_server(cloud.services.api, server.uuid)
        assert move.recipe == "delete" and conductor.calls[0][1]["move_id"] == move.id

    def test_twice(self, api: Any, cloud: Any, conductor: Any, server: Instance) -> None:
        assert api.delete(f"/servers/{server.uuid}").status == 204
        assert api.delete(f"/servers/{server.uuid}").status == 204
        assert len(conductor.calls) == 1 and recorded(cloud, server) == ["delete"]

    def test_forced(self, api: Any, conductor: Any, server: Instance) -> None:
        assert act(api, server, "forceDelete").status == 202
        assert conductor.calls[0][0] == "run_move"

    def test_locked(self, api: Any, admin: Any, cloud: Any, server: Instance) -> None:
        instances.update(cloud.cell("cell1"), server.uuid, locked=True)
        assert api.delete(f"/servers/{server.uuid}").status == 409
        assert admin.delete(f"/servers/{server.uuid}").status == 204

    def test_before_it_has_a_cell(self, api: Any, cloud: Any, conductor: Any) -> None:
        uuid = make_build_request(cloud)
        assert api.delete(f"/servers/{uuid}").status == 204
        assert api.get(f"/servers/{uuid}").status == 404
        assert api.get("/servers").json["servers"] == []
        assert conductor.calls == []

    def test_at_the_moment_it_gets_a_cell(
        self, api: Any, cloud: Any, conductor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uuid = make_build_request(cloud)
        delete = build_requests.delete_in

        def too_late(connection: Any, server_id: str) -> bool:
            instance = Instance(server_id, "project", "user", "x", Flavor("1", "f", 1, 1, 1), created_at=utcnow())
            with cloud.cell("cell1").write() as other:
                instances.insert(other, instance)
            delete(connection, server_id)
            mappings.set_cell_in(connection, server_id, cloud.cell_uuids["cell1"], expected=None)
            return False

        monkeypatch.setattr(build_requests, "delete_in", too_late)
        # The conductor's transaction is played in ours, which is rolled back only if it raises.
        assert api.delete(f"/servers/{uuid}").status == 204
        assert conductor.calls[0][0] == "run_move"

    def test_nothing_there(self, api: Any) -> None:
        assert api.delete(f"/servers/{MISSING}").status == 404


class TestUpdate:
    def test_all_fields(self, api: Any, server: Instance) -> None:
        wanted = {
            "name": "other",
            "description": "d",
            "accessIPv4": "10.0.0.1",
            "accessIPv6": "fd00::1",
            "hostname": "h.example",
            "OS-DCF:diskConfig": "AUTO",
        }
        answer = api.put(f"/servers/{server.uuid}", {"server": wanted})
        assert answer.status == 200
        assert answer.json["server"] == api.get(f"/servers/{server.uuid}").json["server"]
        shown = answer.json["server"]
        assert shown["name"] == "other" and shown["accessIPv6"] == "fd00::1" and shown["OS-DCF:diskConfig"] == "AUTO"
        assert shown["OS-EXT-SRV-ATTR:hostname"] == "h.example" and shown["description"] == "d"

    def test_addresses_are_kept_in_their_shortest_form(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}"
        long = {"accessIPv6": "0000:0000:0000:0000:0000:babe:220.12.22.2"}
        assert api.put(path, {"server": long}).json["server"]["accessIPv6"] == "::babe:dc0c:1602"
        assert api.put(path, {"server": {"accessIPv6": ""}}).json["server"]["accessIPv6"] == ""
        assert api.put(path, {"server": {"accessIPv6": "fe80::1%eth0"}}).status == 400

    def test_in_verify_resize_and_without_a_cell(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.RESIZED)
        assert api.put(f"/servers/{server.uuid}", {"server": {"name": "n"}}).json["server"]["name"] == "n"
        uuid = make_build_request(cloud)
        assert api.put(f"/servers/{uuid}", {"server": {"name": "n"}}).status == 200
        assert api.get(f"/servers/{uuid}").json["server"]["name"] == "n"

    def test_the_short_answer_before_2_75(self, api: Any, server: Instance) -> None:
        shown = api.put(f"/servers/{server.uuid}", {"server": {"name": "n"}}, version="2.74").json["server"]
        assert "OS-EXT-STS:vm_state" not in shown and "config_drive" not in shown
        assert shown["server_groups"] == [] and shown["OS-DCF:diskConfig"] == "MANUAL"

    @pytest.mark.parametrize(
        ("fields", "version"),
        [
            ({"name": ""}, "2.96"),
            ({"name": None}, "2.96"),
            ({"description": "x"}, "2.18"),
            ({"hostname": "x y"}, "2.96"),
            ({"hostname": "aa"}, "2.89"),
            ({"accessIPv4": "x"}, "2.96"),
            ({"nonsense": 1}, "2.96"),
            ({"OS-DCF:diskConfig": "x"}, "2.96"),
            ({"description": "x" * 256}, "2.96"),
            ({"pinned_availability_zone": None}, "2.103"),
        ],
    )
    def test_bad_requests(self, api: Any, server: Instance, fields: dict[str, Any], version: str) -> None:
        assert api.put(f"/servers/{server.uuid}", {"server": fields}, version=version).fault == "badRequest"

    def test_pinning(self, api: Any, cloud: Any, server: Instance) -> None:
        from causeway.scheduler.request import RequestSpec

        database = cloud.cell("cell1")
        instances.update(database, server.uuid, availability_zone="z", pinned_availability_zone="z")
        spec = RequestSpec(server.uuid, "project", "user", server.flavor, availability_zone="z")
        mappings.save_spec(cloud.services.api, server.uuid, spec.to_persist())
        path = f"/servers/{server.uuid}"
        assert api.put(path, {"server": {"pinned_availability_zone": "y"}}).status == 409
        answer = api.put(path, {"server": {"pinned_availability_zone": None}})
        assert answer.json["server"]["pinned_availability_zone"] is None
        assert mappings.get_spec(cloud.services.api, server.uuid)["availability_zone"] is None
        assert api.put(path, {"server": {"pinned_availability_zone": "z"}}).status == 200


class Asked:
    """What was asked of `causeway.moves.requests`."""

    def __init__(self) -> None:
        self.resizes: list[dict[str, Any]] = []
        self.others: list[str] = []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(moves, "request_resize", lambda *_args, **named: asked.resizes.append(named))
    monkeypatch.setattr(moves, "request_confirm", lambda *_args, **_named: asked.others.append("confirm"))
    monkeypatch.setattr(moves, "request_revert", lambda *_args, **_named: asked.others.append("revert"))
    return asked


@pytest.fixture
def cross_cell(cloud: Any) -> Iterator[None]:
    """Members of the project may move servers between cells."""
    enforcer = cloud.services.enforcer
    rule = policy.RuleDefault(CROSS_CELL_RESIZE, "project_id:%(project_id)s or role:admin")
    enforcer._oslo.set_rules(policy.Rules({**enforcer._oslo.rules, CROSS_CELL_RESIZE: rule.check}), use_conf=False)
    enforcer._look_again()
    return iter(())


class TestResize:
    @pytest.fixture(autouse=True)
    def flavors(self, cloud: Any) -> None:
        for flavor in (
            Flavor("1", "m1.tiny", 1, 512, 1),
            Flavor("2", "bigger", 2, 1024, 2),
            Flavor("3", "diskless", 1, 512, 0),
            Flavor("4", "private", 1, 512, 2, is_public=False),
            Flavor("5", "disabled", 1, 512, 2, disabled=True),
            Flavor("6", "accelerated", 1, 512, 2, extra_specs={"accel:device_profile": "fpga"}),
            Flavor("7", "tight", 1, 64, 1),
        ):
            flavors.create(cloud.services.api, flavor)

    def test_accepted(self, api: Any, asked: Asked, server: Instance) -> None:
        answer = act(api, server, "resize", {"flavorRef": "2", "OS-DCF:diskConfig": "AUTO"})
        assert (answer.status, answer.text) == (202, "")
        (move,) = asked.resizes
        assert move["flavor"].flavorid == "2" and move["host"] is None and move["auto_disk_config"] is True
        # Nobody may leave a cell by default.
        assert move["cross_cell_allowed"] is False

    @pytest.mark.usefixtures("cross_cell")
    def test_policy_allows_to_leave_the_cell(self, api: Any, asked: Asked, server: Instance, network: Any) -> None:
        assert act(api, server, "resize", {"flavorRef": "2"}).status == 202
        assert asked.resizes[0]["cross_cell_allowed"] is True
        assert network.calls == []

    @pytest.mark.parametrize("flavor", ["nonsense", "1", "3", "4", "5", "6", ""])
    def test_flavors_that_do_not_do(self, api: Any, asked: Asked, server: Instance, flavor: str) -> None:
        assert act(api, server, "resize", {"flavorRef": flavor}).fault == "badRequest"
        assert asked.resizes == []

    @pytest.mark.usefixtures("asked")
    def test_another_projects_private_flavor_is_not_found(self, api: Any, cloud: Any, server: Instance) -> None:
        flavor = flavors.get(cloud.services.api, "4")
        flavors.add_project(cloud.services.api, flavor, "elsewhere")
        answer = act(api, server, "resize", {"flavorRef": "4"})
        assert (answer.status, answer.message) == (400, "Flavor 4 could not be found.")
        flavors.add_project(cloud.services.api, flavor, "project")
        assert act(api, server, "resize", {"flavorRef": "4"}).status == 202

    @pytest.mark.parametrize("image_ref", ["", "11111111-2222-3333-4444-555555555555"])
    def test_the_image_wants_more_memory(
        self, api: Any, cloud: Any, asked: Asked, server: Instance, image_ref: str
    ) -> None:
        instances.update(cloud.cell("cell1"), server.uuid, image_meta=ImageMeta("i", min_ram=100), image_ref=image_ref)
        assert act(api, server, "resize", {"flavorRef": "7"}).status == 400
        assert asked.resizes == []

    @pytest.mark.parametrize("image", [ImageMeta("i", min_disk=3), ImageMeta("i", size=3 << 30)])
    def test_the_image_does_not_fit_the_disk(
        self, api: Any, cloud: Any, asked: Asked, server: Instance, image: ImageMeta
    ) -> None:
        """Bug 1867077."""
        instances.update(cloud.cell("cell1"), server.uuid, image_meta=image)
        answer = act(api, server, "resize", {"flavorRef": "2"})
        assert answer.status == 400 and "disk" in answer.message
        assert asked.resizes == []

    def test_quota_of_an_upsize(self, api: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        cloud.option("quota", "cores", 1)
        assert act(api, server, "resize", {"flavorRef": "2"}).fault == "forbidden"
        assert act(api, server, "resize", {"flavorRef": "7"}).status == 202
        assert len(asked.resizes) == 1

    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({"forced_down": True}, 409),
            ({"last_seen_up": None}, 409),
            ({"disabled": True}, 202),
            ({"disabled": True, "forced_down": True}, 409),
        ],
    )
    def test_the_source_must_be_up(
        self, api: Any, cloud: Any, asked: Asked, server: Instance, changes: dict[str, Any], status: int
    ) -> None:
        (service,) = hosts.list_services(cloud.cell("cell1"))
        hosts.update_service(cloud.cell("cell1"), service.uuid, **changes)
        assert act(api, server, "resize", {"flavorRef": "2"}).status == status
        assert len(asked.resizes) == (status == 202)

    def test_migrate_to_a_host(self, admin: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        cloud.host("host2")
        cloud.host("elsewhere", "cell2")
        assert act(admin, server, "migrate", {"host": "host2"}).status == 202
        assert asked.resizes[-1]["host"] == "host2" and asked.resizes[-1]["flavor"] is None
        for host in ("host1", "nonsense", "elsewhere"):
            assert act(admin, server, "migrate", {"host": host}).fault == "badRequest"
        assert act(admin, server, "migrate", None).status == 202
        assert act(admin, server, "migrate", {"host": "host2"}, version="2.55").status == 202
        assert asked.resizes[-1]["host"] is None

    @pytest.mark.usefixtures("cross_cell")
    def test_migrate_to_a_host_of_another_cell(self, admin: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        cloud.host("elsewhere", "cell2")
        assert act(admin, server, "migrate", {"host": "elsewhere"}).status == 202
        assert asked.resizes[0]["cross_cell_allowed"] is True

    @pytest.mark.usefixtures("asked")
    def test_the_host_is_for_administrators(self, api: Any, server: Instance) -> None:
        manager = api.by("manager:project")
        assert act(manager, server, "migrate").status == 202
        assert act(manager, server, "migrate", {"host": "host2"}).status == 403

    def _finished(self, cloud: Any, server: Instance, status: MigrationStatus = MigrationStatus.FINISHED) -> None:
        set_states(cloud, server, VmState.RESIZED)
        migration = Migration(
            "d0000000-0000-0000-0000-000000000001",
            server.uuid,
            "resize",
            status,
            source_compute="host1",
            source_cell=cloud.cell_uuids["cell1"],
        )
        with cloud.services.api.write() as connection:
            migrations.insert_in(connection, migration)

    def test_confirm_and_revert(self, api: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        self._finished(cloud, server)
        assert act(api, server, "confirmResize").status == 204
        assert act(api, server, "revertResize").status == 202
        assert asked.others == ["confirm", "revert"]

    @pytest.mark.parametrize("name", ["confirmResize", "revertResize"])
    def test_only_when_resized(self, api: Any, server: Instance, name: str) -> None:
        answer = act(api, server, name)
        assert (answer.status, answer.message) == (
            409,
            f"Cannot '{name}' instance {server.uuid} while it is in vm_state active",
        )

    @pytest.mark.parametrize("name", ["confirmResize", "revertResize"])
    def test_only_with_a_finished_migration(self, api: Any, cloud: Any, server: Instance, name: str) -> None:
        self._finished(cloud, server, MigrationStatus.ERROR)
        assert act(api, server, name).fault == "badRequest"
        assert reread(cloud, server).task_state is None

    def test_confirm_needs_the_source(self, api: Any, cloud: Any, asked: Asked, server: Instance) -> None:
        self._finished(cloud, server)
        (service,) = hosts.list_services(cloud.cell("cell1"))
        hosts.update_service(cloud.cell("cell1"), service.uuid, last_seen_up=None)
        assert act(api, server, "confirmResize").fault == "conflictingRequest"
        assert asked.others == []


def test_actions_of_old_or_not_there(api: Any, admin: Any, server: Instance) -> None:
    """A server that is not there is 404 before anything else; nothing can be restored, since no delete is put off."""
    for body in ({"restore": None}, {"rescue": {}}, {"trigger_crash_dump": None}):
        assert api.post("/servers/99999999-2222-3333-4444-555555555555/action", body).status == 404
    path = f"/servers/{server.uuid}/action"
    assert api.post(path, {"restore": None}).status == 409
    assert api.post(path, {"rescue": None}).status == 501
    assert api.post(path, {"injectNetworkInfo": None}).status == 403
    consoles = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    assert api.post(f"/servers/{server.uuid}/remote-consoles", consoles).status == 501
    assert api.get(f"/servers/{server.uuid}/diagnostics").status == 403
    assert admin.get(f"/servers/{server.uuid}/diagnostics").status == 501
    assert admin.post(path, {"injectNetworkInfo": None}).status == 202
