"""Checks are pure functions over a snapshot: what they say follows from what was read, and from nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from causeway.audit.checks import (
    CHECKS,
    Check,
    allocations,
    attachments,
    bindings,
    disks,
    files,
    guests,
    history,
    images,
    owners,
    records,
    run_checks,
    states,
)
from causeway.audit.checks import (
    operations as operation_checks,
)
from causeway.audit.fixes import ACTIONS
from causeway.audit.snapshot import HostState, OpenEvent, Record, ServerStanding, Snapshot
from causeway.clients.placement.types import AllocationRequest
from causeway.clients.volume import Attachment, Volume
from causeway.model.audit import HostContents, OrphanedFile, Severity
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping
from causeway.model.image import ImageMeta
from causeway.model.migration import Migration
from causeway.model.operations import (
    CREATE_IMAGE,
    CREATE_VOLUME_IMAGE,
    DELETE,
    LIVE_MIGRATION,
    SNAPSHOT_VOLUME,
    Operation,
)
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus, PowerState, TaskState, VmState
from causeway.moves.memory import AttachmentPair, MoveMemory
from causeway.scheduler.request import Selection
from causeway.store.api.mappings import InstanceMapping

NOW = datetime(2026, 1, 1, 12)
SERVER = "5e7e0000-0000-4000-8000-000000000001"
FLAVOR = Flavor("f", "f", vcpus=1, memory_mb=64, root_gb=1)


def record(cell: str = "cell1", **fields: Any) -> Record:
    values: dict[str, Any] = {
        "host": f"{cell}-host1",
        "vm_state": VmState.ACTIVE,
        "task_state": None,
        "power_state": PowerState.RUNNING,
        "updated_at": NOW,
    }
    return Record(SERVER, cell, "p", "u", flavor=FLAVOR, **(values | fields))


def cloud(*found: Record, home: str | None = "cell1", **fields: Any) -> Snapshot:
    """Two cells with a host each, and a server with these records that lives in ``home``."""
    snapshot = Snapshot(NOW, stale_after=600.0)
    for name in ("cell1", "cell2"):
        snapshot.cells[name] = CellMapping(name, name, "", "")
        snapshot.hosts[f"{name}-host1"] = HostState(f"{name}-host1", name, f"node-{name}", HostContents())
    if found:
        snapshot.records[SERVER] = list(found)
        snapshot.mappings[SERVER] = InstanceMapping(SERVER, "p", "u", NOW, home)
    for name, value in fields.items():
        setattr(snapshot, name, value)
    return snapshot


def move(state: SagaState = SagaState.RUNNING, recipe: str = "resize", **fields: Any) -> Operation:
    """A resize from cell1 to cell2."""
    memory = MoveMemory(
        migration_type="resize",
        source_cell="cell1",
        source_host="cell1-host1",
        source_node="node-cell1",
        source_hypervisor="cell1-host1",
        source_zone="nova",
        old_flavor=FLAVOR,
        new_flavor=FLAVOR,
        old_vm_state=VmState.ACTIVE,
        selection=Selection(
            "cell2-host1", "node-cell2", "cell2-host1", "cell2", "cell2", AllocationRequest({}), "nova"
        ),
        bound_hosts=["cell2-host2"],
        attachments=[AttachmentPair("volume", "at-source", "at-target")],
    )
    return Operation(
        id="move",
        migration_uuid="migration",
        instance_uuid=SERVER,
        recipe=recipe,
        state=state,
        data=msgspec.to_builtins(memory),
        **fields,
    )


def migration(status: MigrationStatus) -> dict[str, Migration]:
    return {"migration": Migration("migration", SERVER, "resize", status)}


def kinds(check: Any, snapshot: Snapshot) -> list[str]:
    return [found.kind for found in check(snapshot)]


# what a move explains


def test_a_move_under_way_explains_every_host_that_it_touched() -> None:
    snapshot = cloud(record(), operations=[move()], migrations=migration(MigrationStatus.MIGRATING))
    movement = snapshot.movement(SERVER)
    assert movement is not None and movement.under_way
    assert movement.hosts == {"cell1-host1", "cell2-host1", "cell2-host2"}
    assert movement.cells == {"cell1", "cell2"}
    assert movement.attachment_ids == {"at-source", "at-target"}


def test_a_move_that_waits_explains_its_two_ends_only() -> None:
    snapshot = cloud(record(), operations=[move(SagaState.DONE)], migrations=migration(MigrationStatus.FINISHED))
    waiting = snapshot.waiting(SERVER)
    assert waiting is not None
    assert waiting.hosts == {"cell1-host1", "cell2-host1"}


@pytest.mark.parametrize("status", [MigrationStatus.CONFIRMED, MigrationStatus.REVERTED, MigrationStatus.ERROR])
def test_a_move_that_has_ended_explains_nothing(status: MigrationStatus) -> None:
    snapshot = cloud(record(), operations=[move(SagaState.DONE)], migrations=migration(status))
    assert snapshot.movement(SERVER) is None


def test_nothing_is_said_of_servers_whose_cell_is_down() -> None:
    snapshot = cloud(record(), down_cells={"cell1"})
    snapshot.records.clear()
    assert snapshot.standing(SERVER) is ServerStanding.UNSEEN
    assert run_checks(snapshot) == []


# records


def test_a_copy_is_explained_by_a_move_and_otherwise_is_one_too_many() -> None:
    two = (record(), record("cell2", hidden=True))
    assert kinds(records.second_copies, cloud(*two)) == ["record.second_copy"]
    assert kinds(records.second_copies, cloud(*two, operations=[move()])) == []


def test_the_only_record_is_never_deleted() -> None:
    (found,) = records.second_copies(cloud(record("cell2", hidden=True), home="cell1"))
    assert found.fix is None and "only one" in found.left


def test_flags_are_not_looked_at_while_a_move_switches_them() -> None:
    hidden = (record(hidden=True), record("cell2"))
    assert kinds(records.hidden_flags, cloud(*hidden)) == ["record.hidden_flag"]
    assert kinds(records.hidden_flags, cloud(*hidden, operations=[move()])) == []


# states and moves


@pytest.mark.parametrize(
    ("task", "age", "stale"),
    [
        (TaskState.RESIZE_MIGRATING, 0, True),
        (TaskState.POWERING_ON, 0, False),
        (TaskState.POWERING_ON, 601, True),
        (None, 601, False),
    ],
)
def test_a_task_state_is_stale_when_nobody_can_be_working(task: TaskState | None, age: int, stale: bool) -> None:
    snapshot = cloud(record(task_state=task, updated_at=NOW - timedelta(seconds=age)))
    assert bool(kinds(states.stale_tasks, snapshot)) is stale


def test_a_task_state_of_a_move_is_not_stale_while_the_move_runs() -> None:
    snapshot = cloud(record(task_state=TaskState.RESIZE_MIGRATING), operations=[move()])
    assert kinds(states.stale_tasks, snapshot) == []


def test_a_lease_that_ran_out_is_given_time_to_be_taken_over() -> None:
    for seconds, expected in ((10, []), (120, ["operation.without_owner"])):
        running = move(lease_until=NOW - timedelta(seconds=seconds))
        assert kinds(operation_checks.without_owner, cloud(record(), operations=[running])) == expected


@pytest.mark.parametrize(
    ("recipe", "lease", "reported"),
    [("resize", NOW, True), (DELETE, NOW, False), (DELETE, None, True)],
    ids=["a resize", "a delete about to end", "a delete that nobody began"],
)
def test_what_works_on_a_server_that_is_not_there_is_reported(
    recipe: str, lease: datetime | None, reported: bool
) -> None:
    found = operation_checks.without_server(cloud(operations=[move(recipe=recipe, lease_until=lease)]))
    assert [each.kind for each in found] == ["operation.without_server"] * reported


def test_two_moves_of_a_server_are_one_too_many() -> None:
    other = move()
    other.id, other.migration_uuid = "other", "another"
    assert kinds(operation_checks.more_than_one, cloud(record(), operations=[move(), other])) == [
        "operation.more_than_one"
    ]


@pytest.mark.parametrize(("recipe", "found"), [(CREATE_VOLUME_IMAGE, []), (CREATE_IMAGE, ["operation.more_than_one"])])
def test_an_image_of_volumes_and_its_snapshot_are_not_too_many(recipe: str, found: list[str]) -> None:
    image, snapshot = move(recipe=recipe), move(recipe=SNAPSHOT_VOLUME)
    snapshot.id, snapshot.migration_uuid = "other", "another"
    assert kinds(operation_checks.more_than_one, cloud(record(), operations=[image, snapshot])) == found


# hosts


def test_two_running_guests_are_reported_even_while_a_move_runs() -> None:
    snapshot = cloud(record(task_state=TaskState.RESIZE_FINISH), operations=[move()])
    for host in snapshot.hosts.values():
        host.contents = HostContents(guests={SERVER: PowerState.RUNNING})
    assert kinds(guests.running_twice, snapshot) == ["guest.running_twice"]


def live(state: SagaState = SagaState.RUNNING) -> Operation:
    """A live migration from cell1's host to cell2's (as if these were one cell)."""
    data = {"source_host": "cell1-host1", "place": {"host": "cell2-host1", "zone": "nova"}, "refused": ["cell2-host2"]}
    return Operation(
        id="live", migration_uuid="migration", instance_uuid=SERVER, recipe=LIVE_MIGRATION, state=state, data=data
    )


@pytest.mark.parametrize(
    ("operation", "other", "expected"),
    [
        # Its memory travels, or it has just arrived.
        (live(), PowerState.PAUSED, []),
        (live(), PowerState.RUNNING, ["guest.running_twice"]),
        # What is left of it afterwards is one too many.
        (live(SagaState.DONE), PowerState.PAUSED, ["guest.running_twice", "guest.orphaned", "disk.orphaned"]),
    ],
)
def test_a_guest_on_its_way_is_shown_at_both_ends(operation: Operation, other: PowerState, expected: list[str]) -> None:
    snapshot = cloud(record(task_state=TaskState.MIGRATING), operations=[operation])
    for host, power_state in (("cell1-host1", PowerState.RUNNING), ("cell2-host1", other)):
        snapshot.hosts[host].contents = HostContents(guests={SERVER: power_state}, disks=[SERVER])
    found = [*guests.running_twice(snapshot), *guests.elsewhere(snapshot), *disks.elsewhere(snapshot)]
    assert [each.kind for each in found] == expected
    assert ("cell2-host2" in snapshot.may_hold(SERVER)) is (operation.state is SagaState.RUNNING)


def test_of_a_host_that_did_not_answer_nothing_is_said() -> None:
    snapshot = cloud(record())
    snapshot.hosts["cell1-host1"].contents = None
    assert kinds(guests.missing, snapshot) == []
    assert kinds(guests.power_states, snapshot) == []


def test_the_file_of_a_transfer_belongs_to_its_move() -> None:
    file = OrphanedFile(f"{SERVER}.part-of-{SERVER}", 1.0)
    for running, expected in (([], ["file.orphaned"]), ([move()], [])):
        snapshot = cloud(record(), operations=running)
        snapshot.hosts["cell2-host1"].contents = HostContents(leftover_files=[file])
        assert kinds(files.files, snapshot) == expected


def test_a_host_has_files_of_a_server_while_an_operation_needs_them() -> None:
    file = OrphanedFile(f"exports.part-of-{SERVER}", 0.0)
    for state, expected in ((SagaState.RUNNING, []), (SagaState.DONE, ["file.orphaned"])):
        snapshot = cloud(record(), operations=[move(state, CREATE_IMAGE)])
        snapshot.hosts["cell1-host1"].contents = HostContents(leftover_files=[file])
        assert kinds(files.files, snapshot) == expected


@pytest.mark.parametrize("kind", ["copies", "rounds", "incoming"])
@pytest.mark.parametrize("shown", [True, False])
def test_what_may_be_the_only_copy_of_a_server_stays(kind: str, shown: bool) -> None:
    snapshot = cloud(record())
    there = HostContents(guests={SERVER: PowerState.RUNNING}, disks=[SERVER])
    snapshot.hosts["cell1-host1"].contents = there if shown else None
    snapshot.hosts["cell2-host1"].contents = HostContents(
        leftover_files=[OrphanedFile(f"{kind}.part-of-{SERVER}", 0.0)]
    )
    (found,) = files.files(snapshot)
    assert (found.fix is not None) == shown


@pytest.mark.parametrize(
    ("vm_state", "rescue_disks", "expected"),
    [
        (VmState.RESCUED, [SERVER], []),
        (VmState.RESCUED, [], ["disk.rescue_missing"]),
        (VmState.ACTIVE, [], []),
        (VmState.ACTIVE, [SERVER], ["disk.rescue_orphaned"]),
    ],
)
def test_a_rescued_server_has_its_rescue_disk_and_no_other_has(
    vm_state: VmState, rescue_disks: list[str], expected: list[str]
) -> None:
    snapshot = cloud(record(vm_state=vm_state))
    snapshot.hosts["cell1-host1"].contents = HostContents(
        guests={SERVER: PowerState.RUNNING}, disks=[SERVER], rescue_disks=rescue_disks
    )
    assert kinds(disks.of_rescues, snapshot) == expected
    assert kinds(disks.missing, snapshot) + kinds(guests.missing, snapshot) + kinds(disks.elsewhere, snapshot) == []


# servers that are shelved

SHELVED: dict[str, Any] = {"vm_state": VmState.SHELVED, "power_state": PowerState.SHUTDOWN, "shelved_image_id": "image"}


def image(status: str = "active", name: str = "name-shelved", owner: str = "p") -> ImageMeta:
    return ImageMeta("image", name, status, owner=owner, properties={"instance_uuid": SERVER})


def test_a_server_that_is_shelved_keeps_its_guest_and_disks_until_it_is_offloaded() -> None:
    snapshot = cloud(record(**SHELVED))
    assert kinds(disks.missing, snapshot) == ["disk.missing"]
    assert kinds(guests.missing, snapshot) == ["guest.missing"]
    snapshot.hosts["cell1-host1"].contents = HostContents(guests={SERVER: PowerState.RUNNING}, disks=[SERVER])
    assert kinds(disks.missing, snapshot) == []
    assert kinds(guests.power_states, snapshot) == ["guest.power_state"]


@pytest.mark.parametrize(
    ("state", "found", "severity"),
    [
        (VmState.SHELVED, [], Severity.ERROR),
        (VmState.SHELVED_OFFLOADED, [], Severity.CRITICAL),
        (VmState.SHELVED_OFFLOADED, [image("queued")], Severity.CRITICAL),
        (VmState.SHELVED_OFFLOADED, [image()], None),
    ],
    ids=["on-its-host", "offloaded", "never-uploaded", "well"],
)
def test_what_a_shelved_server_comes_back_from_is_there(
    state: VmState, found: list[ImageMeta], severity: Severity | None
) -> None:
    snapshot = cloud(record(**SHELVED | {"vm_state": state}), images=found)
    assert [each.severity for each in images.of_shelved(snapshot)] == ([severity] if severity else [])
    assert kinds(images.of_operations, snapshot) == []


@pytest.mark.parametrize(
    ("found", "gone", "fixed"),
    [
        ([record(vm_state=VmState.ACTIVE)], {}, True),
        ([record(vm_state=VmState.ERROR)], {}, False),
        ([], {}, False),
        ([], {"deleted": {SERVER}}, True),
    ],
    ids=["well", "in-error", "no-record", "deleted"],
)
def test_a_temporary_image_that_may_be_the_last_copy_is_left(
    found: list[Record], gone: dict[str, Any], fixed: bool
) -> None:
    temporary = ImageMeta("image", name="s-resize-temp", status="active", properties={"migration_uuid": "migration"})
    snapshot = cloud(*found, images=[temporary], migrations=migration(MigrationStatus.ERROR), **gone)
    snapshot.mappings[SERVER] = InstanceMapping(SERVER, "p", "u", NOW, "cell1")
    (disagreement,) = images.orphaned(snapshot)
    assert (disagreement.kind, disagreement.fix is not None) == ("image.orphaned", fixed)
    # Of a server whose cell does not answer nothing is known.
    snapshot.records.clear()
    snapshot.down_cells = {"cell1"}
    assert kinds(images.orphaned, snapshot) == []


def test_an_ended_migration_of_a_server_in_a_cell_that_is_down_keeps_its_allocation() -> None:
    held = {"migration": {"node-cell1": {"VCPU": 1}}}
    snapshot = cloud(record(), allocations=held, migrations=migration(MigrationStatus.ERROR))
    assert kinds(allocations.of_migrations, snapshot) == ["allocation.orphaned"]
    snapshot.records.clear()
    snapshot.down_cells = {"cell1"}
    assert kinds(allocations.of_migrations, snapshot) == []


@pytest.mark.parametrize(
    ("found", "kind"),
    [(image("queued", "picture"), "image.unfinished"), (image(), "image.orphaned"), (image(name="picture"), None)],
    ids=["never-uploaded", "of-shelving", "its-users"],
)
def test_images_of_servers_end_with_the_work_that_made_them(found: ImageMeta, kind: str | None) -> None:
    assert kinds(images.of_operations, cloud(record(), images=[found])) == ([kind] if kind else [])
    assert kinds(images.of_operations, cloud(record(), images=[found], operations=[move()])) == []


def test_the_image_of_a_shelved_server_is_its_projects() -> None:
    snapshot = cloud(record(**SHELVED), images=[image(owner="another")])
    assert kinds(owners.of_images, snapshot) == ["image.of_other_project"]


# devices


def volume(status: str = "in-use", project: str = "p") -> dict[str, Volume]:
    return {"volume": Volume("volume", status, 1, project_id=project)}


def device(**fields: Any) -> BlockDevice:
    values: dict[str, Any] = {"volume_id": "volume", "attachment_id": "attachment", "boot_index": None}
    return BlockDevice("device", SERVER, source_type="volume", destination_type="volume", **(values | fields))


def test_a_servers_volume_is_its_projects() -> None:
    of_another = cloud(record(block_devices=[device()]), volumes=volume(project="another"))
    assert kinds(owners.of_volumes, of_another) == ["volume.of_other_project"]
    assert kinds(owners.of_volumes, cloud(record(block_devices=[device()]), volumes=volume())) == []


def test_a_servers_volume_exists_and_was_asked_for() -> None:
    snapshot = cloud(record(block_devices=[device(attachment_id=None)]), volumes={}, attachments=[])
    assert kinds(attachments.volumes, snapshot) == ["volume.missing"]
    assert kinds(attachments.missing, snapshot) == ["attachment.missing"]


def test_a_volume_on_its_way_is_on_its_way_to_somebody() -> None:
    left = cloud(volumes=volume("detaching"), attachments=[])
    assert kinds(attachments.volumes, left) == ["volume.on_its_way"]
    someones = [Attachment("attachment", "volume", "elsewhere", "reserved")]
    assert kinds(attachments.volumes, cloud(volumes=volume("reserved"), attachments=someones)) == []


def test_a_port_that_a_server_has_is_in_its_record() -> None:
    port = {"port": {"id": "port", "device_id": SERVER, "project_id": record().project_id}}
    assert kinds(bindings.ports_unknown, cloud(record(), ports=port)) == ["port.unknown"]
    assert kinds(bindings.ports_unknown, cloud(record(port_ids=["port"]), ports=port)) == []
    plugging = OpenEvent("cell1", 1, SERVER, "attach_interface", "compute_attach_interface", NOW)
    assert kinds(bindings.ports_unknown, cloud(record(), ports=port, open_events=[plugging])) == []


# operations that are no moves


def test_an_operation_explains_its_task_and_its_history() -> None:
    event = OpenEvent("cell1", 1, SERVER, "shelve", "compute_shelve_instance", NOW)
    snapshot = cloud(record(task_state=TaskState.SHELVING), open_events=[event])
    assert kinds(states.stale_tasks, snapshot) == ["task_state.stale"]
    assert kinds(history.never_ended, snapshot) == ["event.unfinished"]
    shelving = Operation(
        id="move", migration_uuid="migration", instance_uuid=SERVER, recipe="shelve", state=SagaState.RUNNING, data={}
    )
    snapshot = cloud(record(task_state=TaskState.SHELVING), open_events=[event], operations=[shelving])
    assert kinds(states.stale_tasks, snapshot) == []
    assert kinds(history.never_ended, snapshot) == []


# the table


def test_checks_whose_sources_could_not_be_read_are_passed_over() -> None:
    assert run_checks(cloud(record(), allocations=None, ports=None, attachments=None, images=None)) != []
    needing: list[Check] = [check for check in CHECKS if check.needs]
    wanted = {"allocations", "ports", "attachments", "volumes", "images"}
    assert {name for check in needing for name in check.needs} == wanted


def test_every_disagreement_can_be_fixed_or_says_why_not() -> None:
    snapshot = cloud(
        record(task_state=TaskState.RESIZE_PREP),
        record("cell2"),
        allocations={SERVER: {"node-cell2": {"VCPU": 1}}},
        providers={"node-cell1": "node-cell1", "node-cell2": "node-cell2"},
        ports={},
        attachments=[],
        images=[],
        build_requests={SERVER},
    )
    found = run_checks(snapshot)
    assert len(found) > 2
    for each in found:
        assert (each.fix is None) == bool(each.left), each
        assert each.fix is None or each.fix.action in ACTIONS
