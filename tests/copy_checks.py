"""What must hold of copies of servers in every kind of database."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import ComputeNode
from causeway.model.instance import ActionEvent, Instance, InstanceAction, InstanceFault
from causeway.store.cell import actions, copies, hosts, instances
from causeway.store.database import Database

MOVE = "99999999-9999-9999-9999-999999999999"
THEN = datetime(2026, 1, 2, 3, 4, 5, 678901)


def bundle_of(uuid: str, *, hidden: bool = True) -> copies.Bundle:
    server = Instance(uuid, "project", "user", "vm", Flavor("1", "small", 1, 128, 1), hidden=hidden, tags=["b", "a"])
    root, volume = (uuid[:-1] + last for last in "xy")
    return copies.Bundle(
        server,
        [
            BlockDevice(root, uuid, "image", "local", boot_index=0),
            BlockDevice(volume, uuid, "volume", "volume", volume_id=uuid, attachment_id="of before"),
        ],
        [
            InstanceAction(name, uuid, f"req-{name}", start_time=THEN, updated_at=THEN, events=events)
            for name, events in (
                ("create", [ActionEvent("build", THEN), ActionEvent("boot", THEN)]),
                ("stop", []),
                ("start", [ActionEvent("power_on", THEN)]),
            )
        ],
        [InstanceFault(500, "an old fault", "its details", "host")],
    )


def same(one: copies.Bundle, other: copies.Bundle) -> bool:
    """But for the order of tags, and for when rows were made."""
    found = []
    for bundle in (one, other):
        devices = [dataclasses.replace(each, created_at=None) for each in bundle.block_devices]
        faults = [dataclasses.replace(each, created_at=None) for each in bundle.faults]
        server = dataclasses.replace(bundle.instance, tags=sorted(bundle.instance.tags), created_at=None)
        found.append((server, devices, bundle.actions, faults))
    return found[0] == found[1]


def what_is_written_is_read(database: Database, uuid: str) -> None:
    written = bundle_of(uuid)
    written.instance.host = host = f"host-of-{uuid}"
    copies.write(database, written, closed_by=MOVE, is_first=True)
    whole = copies.read(database, uuid)
    assert same(whole, written)
    found = copies.on_host(database, uuid, "nova-compute")
    assert (found.instance, found.block_devices) == (whole.instance, whole.block_devices)
    assert (found.service, found.address) == (None, None)
    hosts.report_service(database, host, "nova-other", "other", 1)
    service = hosts.report_service(database, host, "nova-compute", "compute", 7)
    hosts.save_node(database, ComputeNode(uuid, host, host, "QEMU", 8000000, 4, 4096, 40, host_ip="192.0.2.1"))
    found = copies.on_host(database, uuid, "nova-compute")
    assert (found.block_devices, found.service, found.address) == (whole.block_devices, service, "192.0.2.1")
    assert instances.closed_by(database, uuid) == (MOVE, True)


def a_copy_that_is_there_is_replaced(database: Database, uuid: str, *, is_first: bool) -> None:
    """``is_first``: whoever writes it knows nothing of the one that is there."""
    copies.write(database, bundle_of(uuid))
    changed = bundle_of(uuid)
    changed.instance = dataclasses.replace(changed.instance, display_name="renamed", tags=["c"])
    kept = dataclasses.replace(changed.block_devices[0], device_name="/dev/vda")
    attached = dataclasses.replace(changed.block_devices[1], uuid=uuid[:-1] + "z", attachment_id="another")
    changed.block_devices = [kept, attached]
    changed.actions = changed.actions[1:]
    changed.faults = []
    copies.write(database, changed, closed_by=MOVE, is_first=is_first)
    assert same(copies.read(database, uuid), changed)
    assert instances.closed_by(database, uuid) == (MOVE, True)


def a_soft_deleted_one_is_replaced(database: Database, uuid: str) -> None:
    copies.write(database, bundle_of(uuid))
    instances.soft_delete(database, uuid)
    copies.write(database, bundle_of(uuid))
    assert same(copies.read(database, uuid), bundle_of(uuid))


def the_server_itself_is_not_replaced(database: Database, uuid: str) -> None:
    living = bundle_of(uuid, hidden=False)
    copies.write(database, living)
    for is_first in (True, False):
        with pytest.raises(errors.StateChanged):
            copies.write(database, bundle_of(uuid), is_first=is_first)
    with pytest.raises(errors.StateChanged):
        copies.hard_delete(database, uuid, hidden_only=True)
    assert same(copies.read(database, uuid), living)


def nothing_stays_of_what_is_deleted(database: Database, uuid: str) -> None:
    copies.write(database, bundle_of(uuid))
    copies.hard_delete(database, uuid, hidden_only=True)
    copies.hard_delete(database, uuid, hidden_only=True)
    owners = {**copies._OWNERS, "servers": instances.TABLE.c.uuid}
    with database.read() as connection:
        left = {
            name: connection.scalar(sa.select(sa.func.count()).where(owner == uuid)) for name, owner in owners.items()
        }
        events = connection.scalar(
            sa.select(sa.func.count()).where(
                actions.EVENTS.c.action_id.not_in(sa.select(actions.ACTIONS.c.id)),
            )
        )
    assert not any(left.values()) and not events


def a_server_without_anything_is_read(database: Database, uuid: str) -> None:
    copies.write(database, copies.Bundle(bundle_of(uuid).instance, [], [], []))
    instances.update(database, uuid, tags=[])
    found = copies.read(database, uuid)
    assert (found.instance.tags, found.block_devices, found.actions, found.faults) == ([], [], [], [])
    with pytest.raises(errors.ServerNotFound):
        copies.read(database, uuid[:-1] + "-")


def _history(database: Database, uuid: str) -> list[InstanceAction]:
    with database.read() as connection:
        return actions.history(connection, uuid)


def an_action_was_updated_when_its_last_event_ended(database: Database, uuid: str) -> None:
    later, last = THEN + timedelta(hours=1), THEN + timedelta(hours=2)
    with database.write() as connection:
        for name in ("create", "stop"):
            actions.start_in(connection, InstanceAction(name, uuid, f"req-{name}", start_time=THEN, updated_at=THEN))
        events = [ActionEvent("boot", THEN, last), ActionEvent("build", THEN, later), ActionEvent("open", THEN)]
        actions.add_first_events_in(connection, uuid, "req-create", events)
    for found in (
        {action.action: action for action in actions.of_instance(database, uuid)},
        {name: actions.get(database, uuid, f"req-{name}") for name in ("create", "stop")},
        {action.action: action for action in _history(database, uuid)},
    ):
        assert {name: action and action.updated_at for name, action in found.items()} == {"create": last, "stop": THEN}

    def changed(since: datetime | None = None, before: datetime | None = None) -> set[str]:
        found = actions.of_instance(database, uuid, changes_since=since, changes_before=before)
        return {action.action for action in found}

    assert changed(since=last) == {"create"} and changed(since=THEN) == {"create", "stop"}
    assert changed(since=last + timedelta(seconds=1)) == set()
    assert changed(before=later) == {"stop"} and changed(before=last) == {"create", "stop"}


ALL = [
    what_is_written_is_read,
    lambda database, uuid: a_copy_that_is_there_is_replaced(database, uuid, is_first=False),
    lambda database, uuid: a_copy_that_is_there_is_replaced(database, uuid, is_first=True),
    a_soft_deleted_one_is_replaced,
    the_server_itself_is_not_replaced,
    nothing_stays_of_what_is_deleted,
    a_server_without_anything_is_read,
    an_action_was_updated_when_its_last_event_ended,
]
NAMES = ["written", "replaced", "replaced unknowingly", "soft-deleted", "living", "deleted", "bare", "updated"]
