"""The memory of a live migration, and the data that all of its steps need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import TaskState, VmState
from causeway.moves.memory import AttachmentPair
from causeway.operations.places import Place, at_place
from causeway.operations.run import OperationRun
from causeway.parts.live_volumes import devices_at_target
from causeway.sagas.memory import Given
from causeway.scheduler.request import RequestedGroup
from causeway.virt.live import LiveSource, LiveTarget

TASKS = {TaskState.MIGRATING}


@dataclass
class LiveMemory:
    """``source_node``: uuid of the source's compute node. ``wanted_host``, ``forced``: as in evacuations.

    ``may_leave_cell``: whether a near-live move to another cell may follow if no host of the cell fits. ``event``: the name, in
    the server's history, of the event for choosing the target. ``place``, ``connector``: of the chosen target. ``refused``: hosts
    that were chosen and refused. ``source``, ``target``: what the two hypervisors must know. ``attachments``: of volumes, at both
    ends. ``devices``: the volumes as the target has them. ``disk_over_commit``: as `LiveSource` has it. ``is_lost``: neither
    hypervisor has the guest.
    """

    source_host: str
    source_node: str
    old_vm_state: VmState
    wanted_host: Given[str | None] = None
    forced: Given[bool] = False
    block_migration: Given[bool | None] = None
    disk_over_commit: Given[bool | None] = None
    may_leave_cell: Given[bool] = False
    event: Given[str] = "conductor_live_migrate_instance"
    group: RequestedGroup | None = None
    place: Place | None = None
    connector: dict[str, object] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    source: LiveSource | None = None
    target: LiveTarget | None = None
    attachments: list[AttachmentPair] = field(default_factory=list)
    devices: list[BlockDevice] = field(default_factory=list)
    guest: GuestOutcome | None = None
    is_lost: bool = False


Run: TypeAlias = OperationRun[LiveMemory]


def there(run: Run) -> Instance:
    """The server as it will be at the target."""
    return at_place(run.instance(), run.memory.place)


def target_host(run: Run) -> str:
    if run.memory.place is None:
        raise RuntimeError("the live migration has no target yet")
    return run.memory.place.host


def notify(
    run: Run, action: str, phase: str, host: str, instance: Instance | None = None, fault: BaseException | None = None
) -> None:
    """Sends ``instance.live_migration_<action>.<phase>`` as ``host``."""
    run.services.notifier.instance_action(
        run.context,
        instance if instance is not None else run.instance(),
        f"live_migration_{action}",
        phase,
        host=host,
        fault=fault,
        block_devices=run.devices(),
    )


@contextmanager
def notified(run: Run, action: str, host: str, instance: Instance | None = None) -> Iterator[None]:
    """Encloses a part of a step with its notifications."""
    notify(run, action, "start", host, instance)
    yield
    notify(run, action, "end", host, instance)


def pair(run: Run, volume_id: str) -> AttachmentPair:
    """The attachments of a volume. Adds them to the memory if they are not there."""
    found = next((each for each in run.memory.attachments if each.volume_id == volume_id), None)
    if found is None:
        found = AttachmentPair(volume_id)
        run.memory.attachments.append(found)
    return found


def devices_there(run: Run) -> list[BlockDevice]:
    """The server's block devices as the target has them."""
    return devices_at_target(run.devices(), run.memory.devices)
