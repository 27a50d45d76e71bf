"""The steps of moves inside a cell. Unlike in moves between cells, the records stay, and the disks go from host to host."""

from __future__ import annotations

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.missed import Missed
from causeway.model.outcomes import DiskOffer, GuestOutcome, SourceOutcome
from causeway.moves.run import Run
from causeway.moves.steps.confirm import ConfirmResizeAtSource
from causeway.moves.steps.finish import FinishResizeAtDest
from causeway.moves.steps.hand_over import PrepResizeAtSource
from causeway.moves.steps.prepare import PrepResizeAtDest, with_new_flavor
from causeway.moves.steps.records import target_devices
from causeway.moves.steps.revert import FinishRevertResizeAtSource, RevertResizeAtDest


class PrepResize(PrepResizeAtDest):
    """Makes inactive port bindings and empty volume attachments for the target, and has the target check and claim.

    If the target refuses, tries the next alternate host. The target can be the source itself, which has its bindings already.
    """

    name = "PrepResize"
    event = "compute_prep_resize"

    def _ask(self, run: Run, host: str) -> MigrationContext:
        return run.target_computes.prep_resize(
            run.context,
            host,
            token=run.token(self.name),
            instance=with_new_flavor(run),
            block_devices=run.source_devices(),
            migration_type=run.memory.migration_type,
        )


class ResizeInstance(PrepResizeAtSource):
    """Has the source power the guest off, offer its local disks to the target, and remove the guest but stash its disks.

    Undo starts the guest from the stashed disks, with its ports and volumes.
    """

    name = "ResizeInstance"
    event = "compute_resize_instance"
    undo_event = "compute_finish_revert_resize"

    def _make_images(self, run: Run) -> None:
        """Does nothing: the source offers its disks, and needs no images."""

    def _hand_over(self, run: Run) -> SourceOutcome:
        return run.source_computes.resize_instance(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            since=run.memory.received_round,
        )

    def _restore_guest(self, run: Run) -> GuestOutcome:
        return restart_from_stash(run, self.name)

    def _complete_copies(self, run: Run) -> list[str]:  # noqa: ARG002
        """Returns none, because no disk goes through the image service."""
        return []

    def _end_copies(self, run: Run) -> None:
        # The source itself ends its offer when it restores the guest.
        run.memory.offer = None


class FinishResize(FinishResizeAtDest):
    """Has the target take over ports and volumes, fetch the disks, and make the guest with the new flavor."""

    name = "FinishResize"
    event = "compute_finish_resize"
    missed = Missed.UNDO_SAME_CELL

    def _make_from_disks(self, run: Run, instance: Instance) -> GuestOutcome:
        memory = run.memory
        return run.target_computes.finish_resize(
            run.context,
            memory.dest_host,
            token=run.token(self.name),
            instance=instance,
            block_devices=target_devices(run, run.source_devices()),
            offer=memory.offer or DiskOffer("", ""),
            source_host=memory.source_host,
            power_on=memory.was_running,
        )

    def _destroy_at_target(self, run: Run) -> None:
        run.target_computes.revert_resize(
            run.context,
            run.memory.dest_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=target_devices(run, run.source_devices()),
            source_host=run.memory.source_host,
        )


class ConfirmResize(ConfirmResizeAtSource):
    """The pivot: deletes the source's stashed disks, port bindings, volume attachments and allocations."""

    name = "ConfirmResize"
    reads = frozenset(
        {"attachments", "old_vm_state", "runs_in_error", "port_ids", "selection", "source_cell", "source_host"}
    )
    event = "compute_confirm_resize"
    missed = Missed.CONFIRM_SAME_CELL

    def _delete_stash(self, run: Run) -> None:
        run.source_computes.confirm_resize(
            run.context, run.memory.source_host, token=run.token(self.name), instance=run.target_instance()
        )


class RevertResize(RevertResizeAtDest):
    """Destroys the guest at the target, with its disks and its connections to volumes."""

    name = "RevertResize"
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
    event = "compute_revert_resize"
    missed = Missed.UNDO_SAME_CELL

    def _notify_start(self, run: Run, instance: Instance) -> None:
        notifier, memory = run.services.notifier, run.memory
        notifier.instance_exists(run.context, instance, host=memory.dest_host)
        notifier.instance_action(
            run.context,
            instance,
            "resize_revert",
            "start",
            host=memory.source_host,
            block_devices=run.target_devices(),
        )

    def _destroy_at_target(self, run: Run, instance: Instance, devices: list[BlockDevice]) -> None:
        run.target_computes.revert_resize(
            run.context,
            run.memory.dest_host,
            token=run.token(self.name),
            instance=instance,
            block_devices=devices,
            source_host=run.memory.source_host,
        )


class FinishRevertResize(FinishRevertResizeAtSource):
    """Starts the guest at the source from its stashed disks, with its ports and volumes."""

    name = "FinishRevertResize"
    event = "compute_finish_revert_resize"

    def _restore_guest(self, run: Run) -> GuestOutcome:
        return restart_from_stash(run, self.name)


def restart_from_stash(run: Run, step: str) -> GuestOutcome:
    return run.source_computes.finish_revert_resize(
        run.context,
        run.memory.source_host,
        token=run.token(step),
        instance=run.source_instance(),
        block_devices=run.source_devices(),
        power_on=run.memory.was_running,
    )
