"""Operations that end the run of a guest that Nova started: from then on it is defined by Causeway, with what it had."""

from __future__ import annotations

import pytest

from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.answers import await_status
from tests.integration.adopt.operations.taken import TakenCloud, tries

pytestmark = pytest.mark.timeout(900)


@tries("reboot")
@pytest.mark.parametrize(("name", "kind"), [("rebooted", "SOFT"), ("power cycled", "HARD")])
def test_a_server_is_rebooted(taken: TakenCloud, name: str, kind: str) -> None:
    uuid = taken.server(name)
    before, first = taken.state(uuid), outside.guest_of(taken.cloud, uuid)
    taken.act(uuid, "reboot", {"type": kind}, status="ACTIVE")
    taken.check_has_booted(uuid, before)
    assert not outside.guest_of(taken.cloud, uuid).is_same_run(first)


@tries("os-stop", "os-start")
def test_a_server_is_stopped_and_started(taken: TakenCloud) -> None:
    uuid = taken.server("started anew")
    before = taken.state(uuid)
    taken.act(uuid, "os-stop", status="SHUTOFF")
    assert outside.guest_of(taken.cloud, uuid).pid is None
    taken.act(uuid, "os-start", status="ACTIVE")
    taken.check_has_booted(uuid, before)


@tries("suspend", "resume")
def test_a_server_is_suspended_and_resumed(taken: TakenCloud) -> None:
    uuid = taken.server("saved")
    before = taken.state(uuid)
    taken.act(uuid, "suspend", status="SUSPENDED")
    assert outside.guest_of(taken.cloud, uuid).pid is None
    taken.act(uuid, "resume", status="ACTIVE")
    taken.check_runs_on(uuid, before)


@tries("rescue", "unrescue")
def test_a_server_is_rescued_and_unrescued(taken: TakenCloud) -> None:
    uuid = taken.server("in need")
    before = taken.state(uuid)
    taken.act(uuid, "rescue", {}, status="RESCUE")
    assert outside.guest_of(taken.cloud, uuid).definition.count("<disk ") > 1
    taken.act(uuid, "unrescue", status="ACTIVE")
    taken.check_has_booted(uuid, before)


@tries("rebuild")
def test_a_server_is_rebuilt_with_a_new_disk_and_its_ports(taken: TakenCloud) -> None:
    uuid = taken.server("rebuilt")
    before = taken.state(uuid)
    taken.act(uuid, "rebuild", {"imageRef": taken.populator.image}, status="ACTIVE")
    seen = len(outside.ticks(taken.cloud, uuid))
    until(lambda: len(outside.ticks(taken.cloud, uuid)), lambda now: now > seen, f"{uuid} to count", outside.PATIENCE)
    after = taken.state(uuid)
    assert after.newest.lines == after.newest.number < before.newest.number
    assert (after.name, set(after.ports)) == (before.name, set(before.ports))


@tries("DELETE ", "forceDelete", "restore")
def test_a_server_is_deleted_restored_and_deleted_for_good(taken: TakenCloud) -> None:
    uuid = taken.server("deleted")
    before, ports = taken.state(uuid), taken.adopted.ports(uuid)
    taken.call("DELETE", f"/servers/{uuid}")
    await_status(taken.adopted.admin, uuid, "SOFT_DELETED")
    taken.act(uuid, "restore", admin=True, status="ACTIVE")
    taken.check_has_booted(uuid, before)
    taken.act(uuid, "forceDelete")
    taken.await_gone(uuid)
    network = taken.adopted.admin.network
    assert [each for each in ports if network.find_port(each) is not None] == []
