"""The first steps of confirm and revert: they check the copy of a server that stays, before the move destroys the other copy.

If the copy that stays is not whole, the move ends before its pivot. Then nothing was destroyed, the server waits for confirm or
revert as before, and its user can choose the other one at once.
"""

from __future__ import annotations

import dataclasses
import logging

from causeway import errors
from causeway.hosts.liveness import HostLife
from causeway.model import operations
from causeway.model.block_device import BlockDevice, has_local_disks
from causeway.model.instance import Instance
from causeway.model.states import PowerState, TaskState
from causeway.moves.dead_hosts import at_source, at_target, raise_if_down, recent_life
from causeway.moves.move_run import Run
from causeway.moves.recipe import Step
from causeway.moves.steps.local_disks import for_old_flavor
from causeway.rpc.compute import ComputeClient
from causeway.virt.driver import GuestFacts

LOG = logging.getLogger(__name__)


class CheckTarget(Step):
    """Confirm: checks that the target has the guest with its disks and volumes. Skipped for a server that is being deleted."""

    name = "CheckTarget"
    reads = frozenset({"old_vm_state", "runs_in_error", "selection", "source_cell", "source_host"})

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        if is_deleting(run):
            return
        _require_up_or_fenced(at_source(run), "The host that the server came from is down.", "confirm")
        require_whole_target(run, recent_life(run, run.memory.target_host, at_target))
        run.keep_records(run.memory.target_cell)


class CheckSource(Step):
    """Revert: checks that the source has the stashed disks, from which the server will be restored."""

    name = "CheckSource"
    reads = frozenset(
        {
            "attachments",
            "local_devices",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "source_cell",
            "source_host",
        }
    )

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        # Reading the target's records has also read the life of the target.
        run.target_instance(), run.source_instance()
        if not run.memory.is_same_host:
            life = recent_life(run, run.memory.target_host, at_target)
            _require_up_or_fenced(life, "The host that the server is on is down.", "revert")
        require_whole_source(run, recent_life(run, run.memory.source_host, at_source))
        run.keep_records(run.memory.target_cell)
        run.keep_records(run.memory.source_cell)


def is_deleting(run: Run) -> bool:
    """Whether the server is being deleted, so that even its last copy can be destroyed."""
    return run.target_instance().task_state is TaskState.DELETING


def require_whole_target(run: Run, life: HostLife) -> None:
    """Raises CopyNotUsable unless the server's copy at its target is whole."""
    devices = run.target_devices()
    power_state = _show(
        run,
        run.target_computes,
        life,
        run.target_instance(),
        devices,
        stashed=False,
        what="the server at its new place",
    )
    _require_attachments(
        run,
        {device.volume_id: device.attachment_id for device in devices if device.volume_id is not None},
        connected=power_state is PowerState.RUNNING,
    )


def require_whole_source(run: Run, life: HostLife) -> None:
    """Raises CopyNotUsable unless the server can be restored from its stashed disks."""
    devices = run.target_devices()
    _show(
        run,
        run.source_computes,
        life,
        dataclasses.replace(run.target_instance(), flavor=run.memory.old_flavor),
        for_old_flavor(run, devices),
        stashed=True,
        what="the server's disks at the place it came from",
    )
    present = {device.volume_id for device in devices if device.is_volume}
    reserved = {pair.volume_id: pair.source for pair in run.memory.attachments if pair.volume_id in present}
    _require_attachments(run, reserved, connected=False)


def require_whole_target_again(run: Run, *, stashed: bool = True) -> None:
    """Repeats `require_whole_target` behind the pivot of a confirm. Continues if the source has nothing left to destroy.

    ``stashed``: whether the source's disks are stashed; False: they are in their place, maybe with the guest. Raises
    CopyNotUsable if the target's copy is not whole and the source still has any of this.
    """
    try:
        require_whole_target(run, at_target(run))
    except errors.CopyNotUsable:
        life = at_source(run)
        if not life.is_up:
            raise
        facts = _inspect(run, run.source_computes, life)
        if facts.has_stashed_disks if stashed else facts.has_disks or facts.power_state is not None:
            raise
        LOG.warning("Move %s continues though the target's copy is not whole: its source has nothing left", run.move.id)


def require_whole_source_again(run: Run) -> None:
    """Repeats `require_whole_source` behind the pivot of a revert. Continues if the target has nothing left to destroy.

    Raises CopyNotUsable if the source's disks are not whole and the target still has the guest or its disks.
    """
    try:
        require_whole_source(run, at_source(run))
    except errors.CopyNotUsable:
        life = at_target(run)
        if not life.is_up:
            raise
        facts = _inspect(run, run.target_computes, life)
        if facts.has_disks or facts.power_state is not None:
            raise
        LOG.warning("Move %s continues though the source's copy is not whole: its target has nothing left", run.move.id)


def _inspect(run: Run, computes: ComputeClient, life: HostLife) -> GuestFacts:
    return computes.inspect_instance(run.context, life.host, instance_uuid=run.uuid)


def require_way_back(run: Run) -> None:
    """Checks, before an undo has the target delete the server, that the guest can be restored at the source.

    Raises HostDown if the source is down, CopyNotUsable if the target may have the only copy of the disks.
    """
    devices, life = run.source_devices(), at_source(run)
    if run.source_instance().task_state is TaskState.DELETING or not has_local_disks(devices):
        return
    raise_if_down(life)
    if not life.is_fenced:
        what = "the server's disks at the place it came from"
        _show(run, run.source_computes, life, run.source_instance(), devices, stashed=True, what=what)
        return
    target = at_target(run)
    if target.is_up:
        facts = run.target_computes.inspect_instance(run.context, target.host, instance_uuid=run.uuid)
        if not facts.has_disks:
            return
    raise errors.CopyNotUsable(
        "The host that the server came from is dead, and its new host may have the only copy of its disks, so that copy stays.",
        details=f"{life.explained()}; {target.explained()}. Start one of them, or delete the server.",
    )


def _require_up_or_fenced(life: HostLife, message: str, action: str) -> None:
    if life.is_down:
        raise errors.CopyNotUsable(
            f"{message} Nothing was changed: {action} again when the host is up, or ask your cloud's administrator.",
            details=life.explained(),
        )


def _show(
    run: Run,
    computes: ComputeClient,
    life: HostLife,
    instance: Instance,
    devices: list[BlockDevice],
    *,
    stashed: bool,
    what: str,
) -> PowerState | None:
    """Has a host check its copy of the server (``what``). Returns the guest's power state.

    Raises CopyNotUsable if the host is down or its copy is not whole.
    """
    if not life.is_up:
        raise _refused(run, f"The host that has {what} is down.", life.explained())
    try:
        facts = computes.verify_server(
            run.context, life.host, instance=instance, block_devices=devices, stashed=stashed
        )
    except (errors.CopyNotUsable, errors.GuestFailed) as failure:
        raise _refused(run, f"The host could not show {what}: {failure.message}", failure.details) from failure
    return facts.power_state


def _require_attachments(run: Run, recorded: dict[str, str | None], *, connected: bool) -> None:
    """Raises CopyNotUsable unless the volume service has the recorded attachments.

    ``recorded``: volume -> attachment; None: not checked. ``connected``: whether they must be connected.
    """
    wanted = {volume: attachment for volume, attachment in recorded.items() if attachment is not None}
    if not wanted:
        return
    present = {each.id: each for each in run.services.volumes.attachments_of_server(run.context, run.uuid)}
    for volume, attachment in wanted.items():
        found = present.get(attachment)
        if found is None or found.volume_id != volume or (connected and not found.is_connected):
            raise _refused(
                run,
                f"Volume {volume} is not attached to the server as the server's records say.",
                f"attachment {attachment}: {found}",
            )


def _refused(run: Run, message: str, details: str) -> errors.CopyNotUsable:
    if run.move.recipe in (operations.CONFIRM_RESIZE, operations.REVERT_RESIZE):
        then = "try again, or choose the other of confirm and revert."
    else:
        then = "the source keeps what it has, and the move continues when the target has shown the server."
    return errors.CopyNotUsable(f"{message} Nothing was destroyed: {then}", details=details)
