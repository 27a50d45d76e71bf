"""Rescues that fail, are interrupted, come late or are not wanted any more: the server has its own disk again, or is rescued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model import operations
from causeway.model.states import PowerState
from causeway.rpc.transport import Verdict
from causeway.store.api import journal, wanted_operations
from causeway.virt.driver import RESCUE_DISK
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.rescued import (
    ask,
    driver_of,
    guest_of,
    has_its_own,
    is_rescued,
    make_image,
    message,
    rescued,
    unrescued,
    with_mark,
)

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 3},
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = THREADS_DIE

RESCUE_POINTS = [
    "rescue.RescueGuest.do.before",
    "compute.rescue_guest.before",
    "driver.prepare_rescue.before",
    "driver.prepare_rescue.after",
    "driver.power_off.after",
    "driver.power_on.after",
    "compute.rescue_guest.after",
    "rescue.RescueGuest.do.after",
    "rescue.MarkRescued.do.before",
    "rescue.MarkRescued.do.after",
]
UNRESCUE_POINTS = [
    "unrescue.StartFromOwnDisk.do.before",
    "driver.power_off.after",
    "driver.power_on.after",
    "compute.unrescue_guest.after",
    "unrescue.EndUnrescue.do.before",
    "unrescue.EndUnrescue.do.after",
    "unrescue.DeleteRescueDisk.do.before",
    "driver.delete_rescue_disk.after",
    "unrescue.DeleteRescueDisk.do.after",
]


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return with_mark(cloud)


def boots(cloud: Cloud, server: Any) -> int:
    guest = guest_of(cloud, server)
    return sum(line.startswith("boot=") for line in guest.read(guest.root_device))


def ended(cloud: Cloud, server: Any, action: str, status: str) -> None:
    """The operation failed, and its user learns why."""
    until(lambda: cloud.events(server, action), bool, f"the event of {action}")
    cloud.settle()
    assert cloud.events(server, action)[0][1] == "Error"
    assert cloud.action(server, action).message
    assert cloud.faults(server)
    shown = cloud.show(server)
    assert (shown.status, shown.task_state) == (status, None)


def test_what_is_refused_before_costs_the_guest_nothing(cloud: AuditedCloud, server: Any) -> None:
    cloud.without_patience()
    before = boots(cloud, server)
    cloud.break_driver([cloud.show(server).compute_host], "prepare_rescue")
    assert ask(cloud.member, server, "rescue").status_code == 200
    ended(cloud, server, "rescue", "ACTIVE")
    has_its_own(cloud, server)
    assert boots(cloud, server) == before and cloud.audit().disagreements == []


def test_an_image_that_went_meanwhile_costs_the_server_nothing(cloud: AuditedCloud, server: Any) -> None:
    image, before = make_image(cloud), boots(cloud, server)
    with cloud.held("rescue_guest") as reached:
        assert ask(cloud.member, server, "rescue", {"rescue_image_ref": image.id}).status_code == 200
        assert reached.wait(30)
        assert cloud.show(server).task_state == "rescuing"
        cloud.admin.image.delete_image(image.id)
    ended(cloud, server, "rescue", "ACTIVE")
    has_its_own(cloud, server)
    assert boots(cloud, server) == before


def test_a_guest_that_does_not_come_up_gets_its_own_disk_again(cloud: AuditedCloud, server: Any) -> None:
    """Nova leaves such a server in error."""
    cloud.without_patience()
    cloud.break_driver([cloud.show(server).compute_host], "power_on", times=1)
    assert ask(cloud.member, server, "rescue").status_code == 200
    ended(cloud, server, "rescue", "ACTIVE")
    has_its_own(cloud, server)
    assert guest_of(cloud, server).power_state is PowerState.RUNNING
    assert cloud.audit().disagreements == []
    rescued(cloud, server)


def test_one_that_was_off_is_off(cloud: AuditedCloud, server: Any) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.without_patience()
    cloud.break_driver([cloud.show(server).compute_host], "power_on", times=1)
    assert ask(cloud.member, server, "rescue").status_code == 200
    ended(cloud, server, "rescue", "SHUTOFF")
    has_its_own(cloud, server)
    assert guest_of(cloud, server).power_state is PowerState.SHUTDOWN
    assert cloud.audit().disagreements == []


def test_one_that_can_not_be_unrescued_stays_rescued(cloud: AuditedCloud, server: Any) -> None:
    """Nova leaves such a server in error."""
    rescued(cloud, server)
    cloud.without_patience()
    cloud.break_driver([cloud.show(server).compute_host], "power_on", times=1)
    assert ask(cloud.member, server, "unrescue").status_code == 202
    ended(cloud, server, "unrescue", "RESCUE")
    is_rescued(cloud, server)
    assert guest_of(cloud, server).power_state is PowerState.RUNNING
    assert cloud.audit().disagreements == []
    unrescued(cloud, server)
    has_its_own(cloud, server)


@pytest.mark.parametrize("point", RESCUE_POINTS)
def test_a_rescue_ends_though_its_owner_dies(cloud: AuditedCloud, server: Any, dies_at: Any, point: str) -> None:
    dies_at(point)
    rescued(cloud, server)
    is_rescued(cloud, server)
    assert cloud.audit().disagreements == []
    unrescued(cloud, server)
    has_its_own(cloud, server)


@pytest.mark.parametrize("point", UNRESCUE_POINTS)
def test_an_unrescue_ends_though_its_owner_dies(cloud: AuditedCloud, server: Any, dies_at: Any, point: str) -> None:
    rescued(cloud, server)
    dies_at(point)
    unrescued(cloud, server)
    has_its_own(cloud, server)
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize(
    "point", ["driver.prepare_rescue.after", "driver.power_off.after", "driver.delete_rescue_disk.after"]
)
def test_an_undone_rescue_ends_though_its_owner_dies(
    cloud: AuditedCloud, server: Any, dies_at: Any, point: str
) -> None:
    cloud.without_patience()
    cloud.break_driver([cloud.show(server).compute_host], "power_on", times=1)
    dies_at(point)
    assert ask(cloud.member, server, "rescue").status_code == 200
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the rescue to end")
    cloud.settle()
    if cloud.show(server).status == "RESCUE":
        # It died before the hypervisor broke, and was continued with.
        unrescued(cloud, server)
    has_its_own(cloud, server)
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
def test_messages_are_lost(cloud: AuditedCloud, server: Any, verdict: Verdict) -> None:
    for action, methods, status in (
        ("rescue", ("rescue_guest",), "RESCUE"),
        ("unrescue", ("unrescue_guest", "delete_rescue_disk"), "ACTIVE"),
    ):
        cloud.lose(methods, verdict, times=len(methods))
        assert ask(cloud.member, server, action).status_code < 300
        cloud.wait(server, status)
        cloud.settle()
    has_its_own(cloud, server)
    assert cloud.audit().disagreements == []


def test_an_order_that_comes_after_it_was_undone_does_nothing(cloud: AuditedCloud, server: Any) -> None:
    cloud.without_patience()
    late = cloud.delay("rescue_guest")
    assert ask(cloud.member, server, "rescue").status_code == 200
    ended(cloud, server, "rescue", "ACTIVE")
    with pytest.raises(errors.ClaimRefused):
        late.arrives()
    has_its_own(cloud, server)
    assert cloud.audit().disagreements == []


def test_a_late_order_to_unrescue_does_nothing(cloud: AuditedCloud, server: Any) -> None:
    rescued(cloud, server)
    cloud.without_patience()
    late = cloud.delay("unrescue_guest")
    assert ask(cloud.member, server, "unrescue").status_code == 202
    ended(cloud, server, "unrescue", "RESCUE")
    with pytest.raises(errors.ClaimRefused):
        late.arrives()
    is_rescued(cloud, server)
    unrescued(cloud, server)
    has_its_own(cloud, server)


def test_a_rescue_that_is_cancelled_leaves_the_server_with_its_own_disk(cloud: AuditedCloud, server: Any) -> None:
    with cloud.held("rescue_guest") as reached:
        assert ask(cloud.member, server, "rescue").status_code == 200
        assert reached.wait(30)
        (move,) = [
            each for each in journal.of_server(cloud.parts.api_database, server.id) if each.recipe == operations.RESCUE
        ]
        assert wanted_operations.request_cancel(cloud.parts.api_database, move.id)
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the rescue to end")
    cloud.settle()
    assert cloud.show(server).status == "ACTIVE"
    has_its_own(cloud, server)
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("action", ["rescue", "unrescue"])
def test_the_server_is_deleted_meanwhile(cloud: AuditedCloud, server: Any, action: str) -> None:
    if action == "unrescue":
        rescued(cloud, server)
    host = cloud.show(server).compute_host
    with cloud.held(f"{action}_guest") as reached:
        assert ask(cloud.member, server, action).status_code < 300
        assert reached.wait(30)
        cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    facts = cloud.driver(host).inspect(server.id)
    assert (facts.power_state, facts.has_disks) == (None, False)
    assert cloud.audit().disagreements == []


def test_requests_during_a_rescue_are_refused(cloud: AuditedCloud, server: Any) -> None:
    with cloud.held("rescue_guest") as reached:
        assert ask(cloud.member, server, "rescue").status_code == 200
        assert reached.wait(30)
        for action in ("rescue", "unrescue", "os-stop", "resize"):
            answer = ask(cloud.member, server, action, {"flavorRef": "gen1.medium"} if action == "resize" else None)
            assert (answer.status_code, "rescuing" in message(answer) or "vm_state" in message(answer)) == (409, True)
    cloud.wait(server, "RESCUE")


@pytest.mark.parametrize("fenced", [True, False])
def test_an_unrescue_does_not_wait_for_a_disk_that_nobody_needs(
    cloud: AuditedCloud, server: Any, dead: Callable[..., None], at_point: Any, fenced: bool
) -> None:
    """Nobody waits for the end of a disk that nobody needs."""
    rescued(cloud, server)
    host = cloud.show(server).compute_host
    at_point("unrescue.DeleteRescueDisk.do.before", lambda: dead(host, fenced=fenced))
    unrescued(cloud, server)
    assert cloud.driver(host).has_rescue_disk(server.id)


def test_the_audit_finds_missing_and_orphaned_rescue_disks(cloud: AuditedCloud, server: Any) -> None:
    rescued(cloud, server)
    driver = driver_of(cloud, server)
    path = driver.files.disks(server.id) / RESCUE_DISK
    content = path.read_bytes()
    path.unlink()
    cloud.only_reports("disk.rescue_missing")
    path.write_bytes(content)
    assert cloud.audit().is_clean
    # Its state was reset, and its guest has the disk: it stays.
    assert ask(cloud.admin, server, "os-resetState", {"state": "active"}).status_code == 202
    cloud.only_reports("disk.rescue_orphaned")
    assert path.exists()
    assert ask(cloud.member, server, "reboot", {"type": "HARD"}).status_code == 202
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    path.write_bytes(content)
    cloud.fixes("disk.rescue_orphaned")
    assert not path.exists()


def test_a_server_of_a_host_that_is_down_is_not_rescued(
    cloud: AuditedCloud, server: Any, dead: Callable[..., None]
) -> None:
    dead(cloud.show(server).compute_host)
    answer = ask(cloud.member, server, "rescue")
    assert (answer.status_code, "is down" in message(answer)) == (409, True)
    assert driver_of(cloud, server).inspect(server.id).has_disks
