"""Known bugs, section 1: moves between cells. See docs/known-bugs.md."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.conductor.upkeep import auto_confirm
from causeway.errors import GuestFailed
from causeway.model.instance import InstanceFault
from causeway.model.states import VmState
from causeway.store.api import mappings
from causeway.store.cell import actions, instances
from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import ALL_HOSTS, KnownBugsCloud


@pytest.mark.embedded("does what a conductor does, when the test says so")
def test_a_resize_that_nobody_ends_is_confirmed_by_a_conductor(cloud: KnownBugsCloud) -> None:
    """Docs: auto-confirm across cells; no compute asks the API database for anything."""
    server, deleted = cloud.boot(), cloud.boot("deleted")
    for each in (server, deleted):
        cloud.resized(each)
    cloud.settle()
    instances.update(cloud.cell("cell2"), deleted.id, task_state="deleting")
    # The window of the embedded cloud is 0: whatever waits, waits too long.
    conductor = cloud.parts.conductor
    auto_confirm.AutoConfirm()(conductor._services, conductor._conductor)
    assert cloud.wait(server, "ACTIVE").flavor["original_name"] == "gen2.small"
    cloud.settle()
    assert cloud.cleanups(server, "cell1") == []
    assert cloud.migration(deleted).status == "finished"
    instances.update(cloud.cell("cell2"), deleted.id, task_state=None)


@pytest.mark.embedded("looks at calls")
def test_no_late_write_of_a_conductor_covers_what_happened_meanwhile(cloud: KnownBugsCloud) -> None:
    """Stale copies: what users change while any step runs is there afterwards, in both outcomes."""
    server = cloud.boot()
    names = iter(f"name-{number}" for number in range(100))
    last = ""

    def rename(_message: Any) -> None:
        nonlocal last
        last = next(names)
        compute = cloud.admin.compute
        assert compute.put(f"/servers/{server.id}", json={"server": {"name": last}}).status_code == 200

    for end in (cloud.reverted, cloud.confirmed):
        cloud.at_every_call(rename)
        cloud.resized(server)
        assert cloud.show(server).name == last
        after = end(server)
        assert (after.name, after.flavor["original_name"]) == (
            last,
            "gen1.small" if end == cloud.reverted else "gen2.small",
        )


@pytest.mark.parametrize("reach", ["cross-cell", "same-cell"])
def test_a_server_that_was_set_to_error_meanwhile_can_be_deleted_when_its_move_has_failed(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch, reach: str
) -> None:
    """2019: whatever the failure's handler writes, the server is usable: restored, with a fault that says why."""
    server = cloud.boot()
    home = cloud.show(server).compute_host

    def reset() -> None:
        answer = cloud.act(server, {"os-resetState": {"state": "error"}}, who=cloud.admin)
        assert answer.status_code == 202, answer.text

    def spawn(*_given: Any, **_named: Any) -> Any:
        raise GuestFailed("The hypervisor broke.")

    for host in set(ALL_HOSTS) - {home}:
        monkeypatch.setattr(cloud.driver(host), "spawn", spawn)
    done = cloud.at(
        "prep_snapshot_based_resize_at_source",
        reset,
    )
    cloud.member.compute.resize_server(server.id, "gen2.small" if reach == "cross-cell" else "any.medium")
    until(lambda: cloud.migration(server), lambda found: found.status == "error", "the migration to fail")
    cloud.settle()
    assert done.is_set()
    assert cloud.show(server).compute_host == home
    assert cloud.show(server).task_state is None
    assert cloud.hosts_of(server) == {home: "guest"}
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)


def test_history_made_while_verifying_survives_with_its_faults(cloud: KnownBugsCloud) -> None:
    """FIXME, TODO: actions, their events and faults, of before the move, of the move and of after it; there and back."""
    server = cloud.boot()
    actions.add_fault(cloud.cell("cell1"), server.id, InstanceFault(500, "before", "", "cell1-host1"))
    cloud.resized(server)
    actions.add_fault(cloud.cell("cell2"), server.id, InstanceFault(500, "meanwhile", "", "cell2-host1"))
    cloud.member.compute.lock_server(server.id)
    cloud.admin.compute.unlock_server(server.id)
    cloud.reverted(server)
    assert [fault.message for fault in cloud.faults(server)] == ["before", "meanwhile"]
    assert cloud.actions(server) == ["create", "resize", "lock", "unlock", "revertResize"]
    cloud.resized(server)
    cloud.confirmed(server)
    assert [fault.message for fault in cloud.faults(server, "cell2")] == ["before", "meanwhile"]
    assert cloud.actions(server) == [*("create", "resize", "lock", "unlock", "revertResize", "resize", "confirmResize")]


def test_a_migration_is_listed_once_and_is_the_same_from_everywhere(cloud: KnownBugsCloud) -> None:
    """2019 and a reading: there is one record of it, not one in each cell."""
    server = cloud.boot()
    cloud.resized(server)
    paths = ["", f"?instance_uuid={server.id}", f"?host={cloud.migration(server).source_compute}", "?status=finished"]
    lists = [
        [
            each
            for each in cloud.admin.compute.get(f"/os-migrations{path}").json()["migrations"]
            if each["instance_uuid"] == server.id
        ]
        for path in paths
    ]
    assert [len(found) for found in lists] == [1, 1, 1, 1]
    assert {found[0]["status"] for found in lists} == {"finished"}
    assert cloud.events(server, "resize")[-1][1] == "Success"


def test_a_failed_revert_shows_the_copy_that_the_mapping_points_to(cloud: KnownBugsCloud) -> None:
    """Reading: a revert that fails before its switch restores the server as VERIFY_RESIZE; the hidden copy is not touched."""
    server, volume = cloud.boot(), cloud.volume()
    cloud.resized(server)
    cloud.attach(server, volume)
    cloud.fail("status", "/attachments$", service="volume", method="POST", status=400)
    cloud.member.compute.revert_server_resize(server.id)
    until(lambda: cloud.actions(server), lambda found: found[-1] == "revertResize", "the revert to begin")
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    source, target = cloud.record(server, "cell1"), cloud.record(server, "cell2")
    assert (source.hidden, target.hidden) == (True, False)
    assert source.vm_state is not VmState.ERROR and (target.vm_state, target.task_state) == (VmState.RESIZED, None)
    assert cloud.migration(server).status == "finished"
    cell = next(each for each in cloud.parts.cells.mappings() if each.name == "cell2")
    assert mappings.get(cloud.parts.api_database, server.id).cell_uuid == cell.uuid
    cloud.heal()
    assert cloud.reverted(server).status == "ACTIVE"
