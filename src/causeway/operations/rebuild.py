"""Rebuilds servers on their host from an image. They keep their ports and volumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from causeway import errors
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState, TaskState, VmState
from causeway.model.things import Thing
from causeway.requests import checked
from causeway.running.operation_run import OperationRun
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests

TASKS = {TaskState.REBUILDING, TaskState.REBUILD_SPAWNING}


@dataclass
class RebuildMemory:
    """``power_on``: whether the server runs afterwards. One that was off stays off; one in ERROR runs."""

    power_on: bool
    guest: GuestOutcome | None = None


Run: TypeAlias = OperationRun[RebuildMemory]


class RebuildGuest(Step[OperationRun[Any]]):
    """Has the host make the guest anew. There is no way back from here: the content of the disk is lost."""

    name = "RebuildGuest"
    reads = frozenset({"power_on"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.DISKS, Thing.GUEST})

    def __init__(self, *, announces: bool = True) -> None:
        """``announces``: whether this is the first step of the rebuild, which notifies of its start."""
        self._announces = announces

    def where(self, run: OperationRun[Any]) -> str | None:
        return run.instance().host

    def do(self, run: OperationRun[Any]) -> None:
        instance, present = run.instance(), run.devices()
        host = instance.host or ""
        checked.require_image(run.services, run.context, instance.image_ref)
        if self._announces and not run.is_repeated:
            announce(run, instance, present)
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            run.memory.guest = guests.make_anew(
                run, self.name, instance, present, snapshot_id=None, power_on=run.memory.power_on
            )


def announce(run: OperationRun[Any], instance: Instance, present: list[BlockDevice]) -> None:
    host, notifier = instance.host or "", run.services.notifier
    notifier.instance_exists(run.context, instance, host=host)
    notifier.instance_action(run.context, instance, "rebuild", "start", host=host, block_devices=present)


class EndRebuild(Step[OperationRun[Any]]):
    """Records the guest that the host has made."""

    name = "EndRebuild"
    reads = frozenset({"guest"})

    def do(self, run: OperationRun[Any]) -> None:
        guest = run.memory.guest
        if guest is None:
            raise RuntimeError("the guest was not rebuilt")
        run.pivot()
        becomes = VmState.ACTIVE if guest.power_state is PowerState.RUNNING else VmState.STOPPED
        instance, present = run.instance(), run.devices()
        if endings.came_up(run, TASKS, guest, instance, vm_state=becomes, progress=0):
            run.services.notifier.instance_action(
                run.context, instance, "rebuild", "end", host=instance.host or "", block_devices=present
            )


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Sets the server to ERROR, since the state of its guest is unknown. It may be rebuilt again or deleted.

    A rebuild that was cancelled before it began changes nothing.
    """
    failed(run, cause, **({"vm_state": VmState.ERROR} if run.steps else {}))


def failed(run: OperationRun[Any], cause: errors.CausewayError, **changes: Any) -> None:
    endings.failed(run, cause, TASKS, **changes)
    try:
        instance, present = run.instance(), run.devices()
    except errors.ServerNotFound:
        return
    run.services.notifier.instance_action(
        run.context, instance, "rebuild", "error", host=instance.host or "", fault=cause, block_devices=present
    )


REBUILD = Recipe(
    operations.REBUILD,
    (RebuildGuest(), EndRebuild()),
    pivot="EndRebuild",
    rolled_back=_rolled_back,
    memory=RebuildMemory,
)
