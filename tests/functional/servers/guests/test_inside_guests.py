"""What users want of guests themselves: diagnostics, crash dumps, trims, another password."""

from __future__ import annotations

import hashlib
import threading
import uuid as uuids
from typing import Any

import pytest

from causeway import errors
from causeway.model.states import TaskState
from causeway.rpc.client import RpcClient
from causeway.rpc.conductor import ConductorClient
from causeway.store.cell import instances
from causeway.virt.simulated.driver import SimulatedDriver
from tests.functional.servers.moves_cloud import Cloud, until

PASSWORD = "a-new-password"


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return cloud.boot()


@pytest.fixture
def with_agent(cloud: Cloud) -> Any:
    image = cloud.admin.image.create_image(
        name=f"agent-{uuids.uuid4()}",
        disk_format="raw",
        container_format="bare",
        visibility="public",
        data=b"x" * 100,
        hw_qemu_guest_agent="yes",
        os_admin_user="keeper",
    )
    return cloud.boot(image_id=image.id)


def act(connection: Any, server: Any, action: str, value: Any = None) -> Any:
    return connection.compute.post(f"/servers/{server.id}/action", json={action: value}, microversion="2.96")


def message(answer: Any) -> str:
    (fault,) = answer.json().values()
    return str(fault["message"])


def test_diagnostics_of_all_hypervisors_are_the_same(cloud: Cloud, server: Any) -> None:
    path = f"/servers/{server.id}/diagnostics"
    shown = cloud.admin.compute.get(path, microversion="2.48").json()
    (port,) = cloud.member.compute.server_interfaces(server.id)
    assert (shown["state"], shown["hypervisor"], shown["num_cpus"]) == ("running", "simulated", 1)
    assert shown["memory_details"] == {"maximum": 128, "used": 128}
    assert [nic["mac_address"] for nic in shown["nic_details"]] == [port.mac_addr]
    assert (shown["num_nics"], shown["num_disks"], shown["config_drive"]) == (1, 1, False)
    assert shown["uptime"] >= 0
    old = cloud.admin.compute.get(path, microversion="2.47").json()
    assert (old["memory"], old["cpu0_time"], old["vda_read_req"]) == (128 * 1024, -1, -1)


def test_no_diagnostics_of_a_guest_that_does_not_run(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    answer = cloud.admin.compute.get(f"/servers/{server.id}/diagnostics", microversion="2.48")
    assert (answer.status_code, "does not run" in message(answer)) == (409, True)


def test_a_crash_dump_is_triggered_in_the_guest(cloud: Cloud, server: Any) -> None:
    assert act(cloud.member, server, "trigger_crash_dump").status_code == 202
    events = until(
        lambda: cloud.events(server, "trigger_crash_dump"), lambda found: bool(found), "the event of the crash dump"
    )
    assert events == [("compute_trigger_crash_dump", "Success")]
    console = cloud.member.compute.get_server_console_output(server.id)
    assert "CAUSEWAY-CRASH-DUMP" in console["output"]
    assert cloud.show(server).task_state is None


def test_a_crash_dump_that_fails_is_reported_and_changes_nothing(
    cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise errors.GuestFailed("The hypervisor failed to interrupt the guest.")

    monkeypatch.setattr(SimulatedDriver, "trigger_crash_dump", fail)
    assert act(cloud.member, server, "trigger_crash_dump").status_code == 202
    until(lambda: cloud.faults(server), lambda found: bool(found), "the fault")
    assert cloud.events(server, "trigger_crash_dump") == [("compute_trigger_crash_dump", "Error")]
    assert (cloud.show(server).status, cloud.faults(server)[0].message) == (
        "ACTIVE",
        "The hypervisor failed to interrupt the guest.",
    )


def trims(cloud: Cloud, server: Any) -> int:
    """How often the guest was trimmed, as its console says."""
    return int(cloud.member.compute.get_server_console_output(server.id)["output"].count("CAUSEWAY-AGENT trimmed"))


def end_of_trim(cloud: Cloud, server: Any) -> list[tuple[str, str]]:
    return until(lambda: cloud.events(server, "guest_trim"), lambda found: bool(found), "the event of the trim")


def test_a_guest_is_trimmed_by_its_agent(cloud: Cloud, with_agent: Any) -> None:
    answer = cloud.member.compute.post(
        f"/servers/{with_agent.id}/action", json={"os-guestTrim": None}, microversion="2.1"
    )
    assert answer.status_code == 202, answer.text
    assert end_of_trim(cloud, with_agent) == [("compute_trim_guest", "Success")]
    assert trims(cloud, with_agent) == 1
    assert cloud.show(with_agent).task_state is None
    assert cloud.faults(with_agent) == []


def test_without_an_agent_no_guest_is_trimmed(cloud: Cloud, server: Any) -> None:
    assert act(cloud.member, server, "os-guestTrim").status_code == 202
    assert end_of_trim(cloud, server) == [("compute_trim_guest", "Error")]
    (fault,) = until(lambda: cloud.faults(server), lambda found: bool(found), "the fault")
    assert fault.message == f"There is no agent in guest {server.id}: it can't be trimmed."
    assert (cloud.show(server).status, trims(cloud, server)) == ("ACTIVE", 0)


def test_a_host_of_an_earlier_release_is_not_asked_to_trim(
    cloud: Cloud, with_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RpcClient, "can_send", lambda _self, version: version != "1.16")
    assert act(cloud.member, with_agent, "os-guestTrim").status_code == 202
    assert end_of_trim(cloud, with_agent) == [("compute_trim_guest", "Error")]
    (fault,) = until(lambda: cloud.faults(with_agent), lambda found: bool(found), "the fault")
    assert "until it is upgraded" in fault.message
    assert trims(cloud, with_agent) == 0


def test_no_guest_is_trimmed_in_the_middle_of_other_work_on_its_host(
    cloud: Cloud, with_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a transfer, which has the server's lock. It ends with the guest off here."""
    compute = cloud.embedded.computes[cloud.show(with_agent).compute_host].host
    asked, lock = threading.Event(), compute.lock

    def seen(uuid: str) -> Any:
        asked.set()
        return lock(uuid)

    with lock(with_agent.id):
        monkeypatch.setattr(compute, "lock", seen)
        assert act(cloud.member, with_agent, "os-guestTrim").status_code == 202
        assert asked.wait(30)
        assert trims(cloud, with_agent) == 0
        # It waits; one is enough.
        assert act(cloud.member, with_agent, "os-guestTrim").status_code == 202
        (fault,) = until(lambda: cloud.faults(with_agent), lambda found: bool(found), "the fault of the second")
        assert "is being trimmed already" in fault.message
        compute.driver.power_off(with_agent.id, 0)
    faults = until(lambda: cloud.faults(with_agent), lambda found: len(found) == 2, "the fault of the first")
    assert [each.message for each in faults if "does not run" in each.message]
    assert trims(cloud, with_agent) == 0


def test_no_guest_is_trimmed_whose_move_began_first(
    cloud: Cloud, with_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ConductorClient.trim_guest

    def late(*given: Any, **more: Any) -> None:
        instances.update(cloud.cell("cell1"), with_agent.id, expected_task={None}, task_state=TaskState.MIGRATING)
        ask(*given, **more)

    monkeypatch.setattr(ConductorClient, "trim_guest", late)
    assert act(cloud.member, with_agent, "os-guestTrim").status_code == 202
    assert end_of_trim(cloud, with_agent) == [("compute_trim_guest", "Error")]
    (fault,) = until(lambda: cloud.faults(with_agent), lambda found: bool(found), "the fault")
    assert "task_state migrating" in fault.message
    assert trims(cloud, with_agent) == 0
    # The move keeps its task.
    assert cloud.show(with_agent).task_state == "migrating"
    instances.update(cloud.cell("cell1"), with_agent.id, expected_task={TaskState.MIGRATING}, task_state=None)


@pytest.mark.parametrize("action", ["trigger_crash_dump", "os-guestTrim", "changePassword"])
def test_refused_of_servers_that_are_off(cloud: Cloud, server: Any, action: str) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    answer = act(cloud.member, server, action, {"adminPass": PASSWORD} if action == "changePassword" else None)
    assert (answer.status_code, "vm_state stopped" in message(answer)) == (409, True)


def test_the_password_is_set_when_the_answer_comes(cloud: Cloud, with_agent: Any) -> None:
    answer = act(cloud.member, with_agent, "changePassword", {"adminPass": PASSWORD})
    assert answer.status_code == 202, answer.text
    guest = cloud.driver(cloud.show(with_agent).compute_host).files.guests[with_agent.id]
    digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
    assert f"password,user=keeper,sha256={digest}" in guest.read(guest.root_device)
    assert cloud.events(with_agent, "changePassword") == [("compute_set_admin_password", "Success")]
    assert cloud.show(with_agent).task_state is None


def test_without_an_agent_no_password_is_set(cloud: Cloud, server: Any, caplog: pytest.LogCaptureFixture) -> None:
    answer = act(cloud.member, server, "changePassword", {"adminPass": PASSWORD})
    assert (answer.status_code, "There is no agent" in message(answer)) == (409, True)
    assert (cloud.show(server).status, cloud.show(server).task_state) == ("ACTIVE", None)
    assert cloud.events(server, "changePassword") == [("compute_set_admin_password", "Error")]
    assert PASSWORD not in caplog.text + answer.text


@pytest.mark.parametrize("body", [None, {}, {"adminPass": 1}, {"adminPass": "x", "user": "y"}])
def test_bad_passwords_are_refused(cloud: Cloud, server: Any, body: Any) -> None:
    assert act(cloud.member, server, "changePassword", body).status_code == 400


def test_while_a_password_is_set_nothing_else_is_done(
    cloud: Cloud, with_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, proceed = threading.Event(), threading.Event()
    set_password = SimulatedDriver.set_password

    def wait(*given: Any) -> None:
        asked.set()
        assert proceed.wait(30)
        set_password(*given)

    monkeypatch.setattr(SimulatedDriver, "set_password", wait)
    user = threading.Thread(target=act, args=(cloud.member, with_agent, "changePassword", {"adminPass": PASSWORD}))
    user.start()
    assert asked.wait(30)
    assert cloud.show(with_agent).status == "PASSWORD"
    assert act(cloud.admin, with_agent, "pause").status_code == 409
    proceed.set()
    user.join()
    cloud.wait(with_agent, "ACTIVE")


def test_a_password_for_a_server_that_was_reset_meanwhile_is_not_set(
    cloud: Cloud, with_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ConductorClient.set_admin_password

    def late(*given: Any, **more: Any) -> None:
        instances.update(
            cloud.cell("cell1"), with_agent.id, expected_task={TaskState.UPDATING_PASSWORD}, task_state=None
        )
        ask(*given, **more)

    monkeypatch.setattr(ConductorClient, "set_admin_password", late)
    answer = act(cloud.member, with_agent, "changePassword", {"adminPass": PASSWORD})
    assert answer.status_code == 409
    guest = cloud.driver(cloud.show(with_agent).compute_host).files.guests[with_agent.id]
    assert not [line for line in guest.read(guest.root_device) if line.startswith("password")]
