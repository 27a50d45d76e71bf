"""Power, locks and what every action has in common: states, records, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.store.api import flavors
from causeway.store.cell import instances
from tests.functional.api.servers.server_actions import MISSING, act, make_build_request, recorded, reread, set_states


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
    def test_an_accepted_action_sets_its_task_and_is_recorded(
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
    def test_an_action_in_a_wrong_state_is_refused(
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

    def test_an_action_on_a_busy_server_is_refused(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_PREP)
        assert "task_state resize_prep" in act(api, server, "os-stop").message

    def test_a_hard_reboot_breaks_into_a_soft_one(self, api: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.REBOOTING)
        assert act(api, server, "reboot", {"type": "SOFT"}).status == 409
        assert act(api, server, "reboot", {"type": "HARD"}).status == 202

    def test_of_two_requests_at_once_only_one_gets_the_server(
        self, api: Any, cloud: Any, conductor: Any, server: Instance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both passed the check of states; only one gets the server."""
        from causeway.api.servers import loading

        begin = loading.begin_action

        def begin_late(*arguments: Any, **named: Any) -> None:
            instances.update(cloud.cell("cell1"), server.uuid, task_state=TaskState.RESIZE_PREP)
            begin(*arguments, **named)

        monkeypatch.setattr(loading, "begin_action", begin_late)
        assert act(api, server, "os-stop").fault == "conflictingRequest"
        assert conductor.calls == [] and recorded(cloud, server) == []

    def test_a_server_without_a_host_is_not_stopped(self, api: Any, cloud: Any) -> None:
        assert act(api, cloud.server(), "os-stop").status == 409

    def test_actions_on_a_server_without_a_cell_are_refused(self, api: Any, cloud: Any) -> None:
        uuid = make_build_request(cloud)
        for name in ("os-stop", "lock", "confirmResize"):
            assert act(api, uuid, name).status == 409


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
    def test_malformed_bodies_are_refused(self, admin: Any, conductor: Any, server: Instance, sent: Any) -> None:
        answer = admin.call("POST", f"/servers/{server.uuid}/action", sent)
        assert answer.fault == "badRequest", answer.text
        assert conductor.calls == []

    @pytest.mark.parametrize(
        "name", ["os-start", "os-stop", "lock", "unlock", "confirmResize", "revertResize", "forceDelete"]
    )
    def test_unknown_servers_are_not_found(self, api: Any, name: str) -> None:
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
    def test_a_locked_server_refuses_actions(
        self, api: Any, cloud: Any, server: Instance, name: str, value: Any
    ) -> None:
        flavors.create(cloud.services.api, Flavor("2", "two", 1, 512, 1))
        instances.update(cloud.cell("cell1"), server.uuid, locked=True, locked_by="owner")
        answer = act(api, server, name, value)
        assert answer.fault == "conflictingRequest" and "is locked" in answer.message

    def test_actions_that_the_api_no_longer_has_are_not_found(self, api: Any, server: Instance) -> None:
        assert act(api, server, "addFloatingIp", {}, version="2.44").status == 404


class TestLock:
    def test_a_lock_shows_its_reason_until_it_is_released(self, api: Any, cloud: Any, server: Instance) -> None:
        assert act(api, server, "lock", {"locked_reason": "why"}).status == 202
        shown = api.get(f"/servers/{server.uuid}").json["server"]
        assert shown["locked"] is True and shown["locked_reason"] == "why"
        assert act(api, server, "unlock").status == 202
        assert reread(cloud, server).locked is False and reread(cloud, server).locked_reason is None
        assert recorded(cloud, server) == ["unlock", "lock"]

    def test_only_administrators_release_an_administrators_lock(
        self, api: Any, admin: Any, cloud: Any, server: Instance
    ) -> None:
        assert act(admin, server, "lock").status == 202
        assert act(api, server, "lock").status == 202
        assert act(api, server, "unlock").fault == "forbidden"
        assert reread(cloud, server).locked_by == "admin"
        assert act(admin, server, "unlock").status == 202

    def test_reset_state_sets_the_state_and_clears_the_task(self, admin: Any, cloud: Any, server: Instance) -> None:
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_MIGRATING)
        assert act(admin, server, "os-resetState", {"state": "error"}).status == 202
        after = reread(cloud, server)
        assert (after.vm_state, after.task_state, after.host) == (VmState.ERROR, None, "host1")

    def test_the_console_output_is_shown_up_to_a_length(
        self, api: Any, cloud: Any, conductor: Any, server: Instance
    ) -> None:
        conductor.answers["get_console_output"] = "login:"
        assert act(api, server, "os-getConsoleOutput", {"length": "5"}).json == {"output": "login:"}
        assert conductor.calls[0][1]["length"] == 5
        assert act(api, server, "os-getConsoleOutput", {"length": -1}).status == 200
        assert conductor.calls[1][1]["length"] is None
        assert act(api, server, "os-getConsoleOutput", {}).status == 200
        assert act(api, cloud.server(), "os-getConsoleOutput", {}).status == 409


def test_actions_of_old_or_not_there(api: Any, admin: Any, server: Instance) -> None:
    """A server that is not there is 404 before anything else; nothing can be restored, since no delete is put off."""
    bodies: list[dict[str, Any]] = [{"restore": None}, {"rescue": {}}, {"trigger_crash_dump": None}]
    for body in bodies:
        assert api.post("/servers/99999999-2222-3333-4444-555555555555/action", body).status == 404
    path = f"/servers/{server.uuid}/action"
    assert api.post(path, {"restore": None}).status == 409
    assert api.post(path, {"unrescue": None}).status == 409
    assert api.post(path, {"injectNetworkInfo": None}).status == 403
    assert api.get(f"/servers/{server.uuid}/diagnostics").status == 403
    assert admin.post(path, {"injectNetworkInfo": None}).status == 202
