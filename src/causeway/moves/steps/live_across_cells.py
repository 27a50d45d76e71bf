"""Live migration to another cell: the hypervisors of two hosts that reach one another hand over the guest, which never stops.

Up to the pivot this is like a live migration inside a cell (`causeway.parts.live_transfer`): both hosts show whether the guest
has arrived. Only then the server is switched to the target's cell. So this switch is behind the pivot, and is repeated until it
succeeds. There is no VERIFY_RESIZE.
"""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager, nullcontext

import sqlalchemy as sa

from causeway import errors
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.missed import Missed
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.model.things import Thing
from causeway.moves import events, reach
from causeway.moves.dead_hosts import answering, at_target
from causeway.moves.hardware import asking
from causeway.moves.memory import MEMORY_VERSION
from causeway.moves.notices import notified
from causeway.moves.port_resources import at_target as with_profiles
from causeway.moves.recipe import NEAR_LIVE_VERSION, Step
from causeway.moves.run import Run
from causeway.moves.steps.check import require_whole_target_again
from causeway.moves.steps.confirm import ReleaseSource
from causeway.moves.steps.near_live import EndNearLiveMigration, PrepareOtherHost
from causeway.moves.steps.records import SwitchInstanceMapping
from causeway.moves.steps.reservations import volumes
from causeway.parts import devices as device_records
from causeway.parts.followers import follower_of
from causeway.parts.live_queue import run_queued
from causeway.parts.live_transfer import Side, Transfer, TransferGuest, failure_of, send_or_note
from causeway.parts.live_volumes import attach_at_target, delete_orphaned_attachments, devices_at_target
from causeway.sagas.journal import Write
from causeway.store.api import journal, mappings, migrations
from causeway.store.cell import instances
from causeway.virt.live import LiveOptions, LiveTarget

# The fields of memory that `_at_target` reads.
_OF_THE_TARGET = frozenset({"port_requests", "selection", "source_cell", "source_host"})


class PrepareOtherHostLive(PrepareOtherHost):
    """Makes inactive port bindings, and has the target check and claim. Volumes follow in `PrepareTarget`."""

    writes = PrepareOtherHost.writes | {"connector"}
    makes = PrepareOtherHost.makes - {Thing.ATTACHMENT}
    migration_status = None
    event = events.CHECK_TARGET_LIVE

    def _ask_source(self, run: Run) -> None:
        memory = run.memory
        with run.event("compute_check_can_live_migrate_source", memory.source_host):
            memory.live_source = run.source_computes.check_can_live_migrate_source(
                run.context,
                memory.source_host,
                instance=run.source_instance(),
                block_devices=run.source_devices(),
                block_migration=None,
            )
            # Cells share nothing.
            memory.live_source.has_shared_storage = False

    def _notified(self, run: Run) -> AbstractContextManager[None]:  # noqa: ARG002 - PrepareTarget sends the live_migration_pre notifications
        return nullcontext()

    def _reserve_volumes(self, run: Run) -> None:
        """Does nothing: volumes must not be connected to a target that may still be replaced by an alternate."""

    def _ask(self, run: Run, host: str) -> MigrationContext:
        memory = run.memory
        if memory.live_source is None:
            raise RuntimeError("the source was not asked")
        if memory.bound_hosts:
            self._require_reached(run, host)
        checked = run.target_computes.check_can_live_migrate_destination(
            run.context,
            host,
            token=run.token(self.name),
            instance=asking(run.services.conf, run.source_instance(), memory.new_flavor),
            block_devices=run.source_devices(),
            source=memory.live_source,
        )
        memory.connector = checked.connector
        return checked.context

    def _require_reached(self, run: Run, host: str) -> None:
        """Raises an error if the source can't reach an alternate host. `SelectOtherCell` has checked only the first choice."""
        why = reach.why_move_near_live(run, host)
        if why is not None:
            raise errors.HostUnreachable(why.message, details=why.details)


class PrepareTarget(Step):
    """Attaches the volumes to the target, and has the target prepare for the guest and listen for it."""

    name = "PrepareTarget"
    reads = _OF_THE_TARGET | {"connector", "live_source"}
    writes = frozenset({"attachments", "live_devices", "live_target"})
    makes = frozenset({Thing.ATTACHMENT, Thing.DISKS})

    def where(self, run: Run) -> str | None:
        return run.memory.dest_host

    def do(self, run: Run) -> None:
        memory, host = run.memory, run.memory.dest_host
        if memory.live_source is None:
            raise RuntimeError("the source was not asked")
        if run.is_repeated:
            delete_orphaned_attachments(run, run.source_devices())
        memory.live_devices = [self._attach(run, device, id) for device, id in volumes(run.source_devices())]
        with (
            run.event("compute_pre_live_migration", host),
            notified(run, "live_migration_pre", host, run.source_instance()),
            answering(run, at_target),
        ):
            try:
                memory.live_target = run.target_computes.pre_live_migration(
                    run.context,
                    host,
                    token=run.token(self.name),
                    instance=_at_target(run),
                    block_devices=_devices_at_target(run),
                    source=memory.live_source,
                )
            except errors.GuestFailed as failure:
                raise failure_of(failure, run.uuid) from failure

    def _attach(self, run: Run, device: BlockDevice, volume_id: str) -> BlockDevice:
        """Attaches a volume to the target. Returns the device with that attachment; the source keeps its own."""
        pair = run.memory.pair(volume_id)
        pair.source = device.attachment_id

        def note(attachment_id: str) -> None:
            pair.target = attachment_id
            run.save()

        return attach_at_target(run, device, volume_id, pair.target, run.memory.connector, note)

    def undo(self, run: Run) -> None:
        memory = run.memory
        with notified(run, "live_migration_rollback", memory.source_host, run.source_instance()):
            self._clear(run)
            for pair in memory.attachments:
                if pair.target is not None:
                    run.services.volumes.delete_attachment(run.context, pair.target)
                    pair.target = None
            delete_orphaned_attachments(run, run.source_devices())

    def _clear(self, run: Run) -> None:
        """Has the target delete everything of the server.

        A target that is down may have a copy of the guest. Nothing resumes that copy; the host deletes it when it is up again.
        """
        host, token, instance, devices = (
            run.memory.dest_host,
            run.token(self.name),
            _at_target(run),
            _devices_at_target(run),
        )

        def clear() -> None:
            with notified(run, "live_migration_rollback_dest", host, instance):
                run.target_computes.rollback_live_migration_at_destination(
                    run.context, host, token=token, instance=instance, block_devices=devices
                )

        send_or_note(run, _target(run), Missed.UNDO_LIVE, instance, devices, token, clear)


class MigrateGuest(TransferGuest[Run]):
    """The pivot: has the source hand the guest over to the target, in another cell."""

    reads = _OF_THE_TARGET | {"live_devices", "live_target", "old_vm_state", "runs_in_error"}
    writes = TransferGuest.writes | {"guest"}

    def _transfer(self, run: Run) -> Transfer:
        return Transfer(_source(run), _target(run), _at_target(run), _devices_at_target(run))

    def _made_ready(self, run: Run) -> tuple[LiveTarget | None, LiveOptions]:
        return run.memory.live_target, LiveOptions()

    def _arrived(self, run: Run, transfer: Transfer) -> None:
        power_state = PowerState.RUNNING if run.memory.was_running else PowerState.PAUSED
        run.memory.guest = GuestOutcome(power_state, transfer.instance.network_info, run.memory.live_devices)


class SwitchBehindPivot(SwitchInstanceMapping):
    """Switches the server to the target cell, where its guest runs already."""

    # The hypervisors copy the disks with the guest.
    reads_if_any = frozenset({"disks", "offer", "snapshot"})
    reads = SwitchInstanceMapping.reads - reads_if_any
    writes = frozenset({"is_switched"})

    def _is_done(self, run: Run) -> bool:
        return mappings.get(run.services.api, run.uuid).cell_uuid == run.memory.target_cell

    def _commit(self, run: Run, switch: Write) -> None:
        # If the answer to this write is lost, the changed value shows that the write took effect.
        run.memory.is_switched = True
        try:
            run.save(also=switch)
        except BaseException:
            run.memory.is_switched = False
            raise


class ArriveAtTarget(Step):
    """Has the target take over the guest's ports and volumes, and records the guest's state."""

    name = "ArriveAtTarget"
    reads = frozenset({"selection", "source_cell", "source_host"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.BINDING})

    def where(self, run: Run) -> str | None:
        return run.memory.dest_host

    def do(self, run: Run) -> None:
        memory, host, instance = run.memory, run.memory.dest_host, run.target_instance()
        if not run.is_repeated:
            _notify_post(run, "start", instance)
        with (
            run.event("compute_post_live_migration_at_destination", host),
            notified(run, "live_migration_post_dest", host, instance),
            answering(run, at_target),
        ):
            memory.guest = guest = run.target_computes.post_live_migration_at_destination(
                run.context,
                host,
                token=run.token(self.name),
                instance=instance,
                block_devices=run.target_devices(),
            )
        with run.target_database.write() as connection:
            device_records.save_connections_in(connection, guest)
            instances.update_in(
                connection,
                run.uuid,
                network_info=guest.network_info,
                power_state=guest.power_state,
                numa_topology=guest.numa_topology,
                pci_devices=guest.pci_devices,
            )


class LeaveSourceCellLive(ReleaseSource):
    """Deletes everything of the server at its source. A source that is down gets the order when it is up again."""

    name = "LeaveSourceCell"
    event = events.RELEASE_SOURCE_LIVE
    pivots = False
    missed = Missed.DELETE_LIVE_SOURCE

    def _notify_start(self, run: Run) -> None:
        """Sends nothing: listeners were notified when the guest arrived."""

    def _check_again(self, run: Run) -> None:
        require_whole_target_again(run, stashed=False)

    def _clean(self, run: Run) -> None:
        host, token, instance, devices = (
            run.memory.source_host,
            run.token(self.name),
            run.source_instance(),
            run.source_devices(),
        )

        def delete_guest() -> None:
            run.source_computes.post_live_migration_at_source(
                run.context, host, token=token, instance=instance, block_devices=devices
            )

        send_or_note(run, _source(run), self.missed, instance, devices, token, delete_guest)


class EndLiveMigration(EndNearLiveMigration):
    """Sets the server's state to that of its guest, ends its task, and lets the next live migration from the source begin."""

    name = "EndLiveMigration"
    reads = EndNearLiveMigration.reads | {"source_host"}

    def do(self, run: Run) -> None:
        super().do(run)
        if not run.is_repeated and run.services.notifier.is_enabled:
            _notify_post(run, "end", instances.get(run.target_database, run.uuid))
        run_queued(run)


def near_live_instead(run: Run, cause: errors.CausewayError) -> bool:
    """Requests a near-live migration instead if a live one can't succeed. Returns whether it did.

    A live migration can't succeed if the source reaches none of the chosen hosts, or the image of the server's disk was deleted.
    In a near-live migration the guest stands still for a while.
    """
    if not isinstance(cause, errors.HostUnreachable | errors.ImageNotFound):
        return False
    memory = dataclasses.replace(run.memory.as_requested(), may_go_live=False)
    memory.events = [*memory.events, *run.step_events()]
    version = NEAR_LIVE_VERSION
    follower = follower_of(run.move, operations.NEAR_LIVE_MIGRATION, version, memory, MEMORY_VERSION, cause)
    requester = journal.requester(run.services.api, run.move.id)

    def write(connection: sa.Connection) -> None:
        journal.insert_in(connection, follower, requester=requester)
        migrations.update_in(connection, run.move.migration_uuid, dest_compute=None, dest_node=None)

    run.with_next_save(write)
    return True


def _source(run: Run) -> Side:
    memory = run.memory
    return Side(memory.source_host, memory.source_cell, run.source_database, run.source_computes)


def _target(run: Run) -> Side:
    memory = run.memory
    return Side(memory.dest_host, memory.target_cell, run.target_database, run.target_computes)


def _at_target(run: Run) -> Instance:
    """Returns the server as it will be at the target."""
    instance, destination = run.source_instance(), run.memory.destination
    return dataclasses.replace(
        instance,
        host=destination.host,
        node=destination.hypervisor_hostname,
        availability_zone=destination.availability_zone,
        network_info=with_profiles(run.memory, instance.network_info),
    )


def _devices_at_target(run: Run) -> list[BlockDevice]:
    return devices_at_target(run.source_devices(), run.memory.live_devices)


def _notify_post(run: Run, phase: str, instance: Instance) -> None:
    run.services.notifier.instance_action(
        run.context, instance, "live_migration_post", phase, host=run.memory.source_host
    )
