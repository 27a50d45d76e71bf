"""The step that prepares the target while the guest runs: bindings, attachments of volumes, and the host's claim."""

from __future__ import annotations

import dataclasses
import logging
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, ClassVar

from causeway import errors
from causeway.clients.network_bindings import PortBinding
from causeway.devices.port_devices import at_host
from causeway.hardware import firmware
from causeway.hardware.port_devices import needs_device, with_device
from causeway.hosts import groups
from causeway.model.block_device import is_volume_backed
from causeway.model.instance import Instance, MigrationContext
from causeway.model.network import Vif
from causeway.model.things import Thing
from causeway.moves import events, hardware
from causeway.moves.dead_hosts import answering, at_target
from causeway.moves.events import EventNames
from causeway.moves.move_run import Run
from causeway.moves.notices import notified
from causeway.moves.port_resources import profile_at
from causeway.moves.recipe import Step
from causeway.moves.steps.reservations import delete_orphaned_attachments, reserve_once, volumes
from causeway.moves.steps.select import note_destination
from causeway.moves.steps.shared_disks import shared_with
from causeway.scheduler.request import Selection
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)


class ReserveHost(Step):
    """Makes inactive port bindings for the target, and has the target check and claim.

    If this fails and the target may be the cause, tries the next alternate host of the same cell. Each attempt is an event of the
    action. The target can be the source itself, which has its bindings already.
    """

    reads = frozenset(
        {
            "group",
            "keeps_memory",
            "migrates_to_same_host",
            "migration_type",
            "new_flavor",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "port_requests",
            "source_cell",
            "source_host",
        }
    )
    writes = frozenset(
        {
            "alternates",
            "bound_hosts",
            "carries_firmware",
            "local_devices",
            "port_ids",
            "selection",
            "volume_backed",
        }
    )
    makes = frozenset({Thing.ALLOCATION, Thing.BINDING, Thing.CLAIM})
    event: ClassVar[EventNames]

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        memory = run.memory
        memory.port_ids = [vif.id for vif in run.source_instance().network_info]
        memory.volume_backed = is_volume_backed(run.source_devices())
        memory.local_devices = [device for device in run.source_devices() if device.is_blank_local]
        memory.carries_firmware = _carries_firmware(run)
        context = self._prepare_one(run)
        context.source_host, context.source_cell = memory.source_host, memory.source_cell
        context.dest_host, context.dest_cell = memory.target_host, memory.target_cell
        hardware.add_old(context, run.source_instance())
        written: dict[str, Any] = {
            "migration_context": context,
            "old_flavor": memory.old_flavor,
            "new_flavor": memory.new_flavor,
            "old_vm_state": memory.old_vm_state,
        }
        instances.update(run.source_database, run.uuid, expected_task=memory.tasks, **written)
        run.keep_records(memory.source_cell, **written)
        if memory.is_cross_cell and (memory.bound_hosts or hardware.has_claims(context)):
            # The records in the target's cell say which of its hosts hold something for the server, and how much.
            instances.change_copy(run.target_database, run.uuid, run.move.id, migration_context=context)

    def _prepare_one(self, run: Run) -> MigrationContext:
        """Prepares the chosen target or, if it fails, the first alternate that succeeds. Returns the target's claim."""
        again = run.is_repeated
        while True:
            asked = False
            try:
                with self.event.during(run, run.memory.target_host), self._notified(run):
                    if again:
                        self._clear_earlier_attempt(run)
                    groups.claim_host(run.services, run.memory.group, run.uuid, run.memory.target_host)
                    self._make_reservations(run, run.memory.destination)
                    asked = True
                    with answering(run, at_target):
                        context = self._ask(run, run.memory.target_host)
                    self._bind_with_devices(run, context)
                    return context
            except errors.StateChanged:
                # Another conductor has taken the move over, or the move is no longer wanted.
                raise
            except Exception as failure:
                # A service failed, so another host would not help.
                unforeseen = not isinstance(failure, errors.CausewayError)
                host_alone = asked or unforeseen or isinstance(failure, errors.ClaimRefused | errors.ServiceRefused)
                if not host_alone or not self._try_next_host(run, failure):
                    raise
            again = False
            run.refresh()

    def _notified(self, run: Run) -> AbstractContextManager[None]:  # noqa: ARG002
        """Encloses the attempt at one host with its notifications, if it has any."""
        return nullcontext()

    def _clear_earlier_attempt(self, run: Run) -> None:
        """Deletes what an earlier attempt, whose end is unknown, made at former hosts. Claims the present host again."""
        memory = run.memory
        for host in memory.bound_hosts:
            self._delete_bindings(run, host)
            hardware.release_claim_if_there(run, host, self.name)
        self._claim(run, memory.destination)

    def _make_reservations(self, run: Run, target: Selection) -> None:
        memory = run.memory
        # The ports are bound to the server's own host already.
        for vif in run.source_instance().network_info if not memory.is_same_host else ():
            if not needs_device(vif.vnic_type):
                self._bind(run, vif, target, profile_at(memory, vif, target))

    def _bind_with_devices(self, run: Run, context: MigrationContext) -> None:
        """Binds the ports that need a device. Their bindings name the devices, so the target must have claimed them before."""
        memory, target = run.memory, run.memory.destination
        devices = {device.request_id: device for device in context.new_pci_devices}
        for vif in run.source_instance().network_info if not memory.is_same_host else ():
            if needs_device(vif.vnic_type):
                profile = with_device(profile_at(memory, vif, target), devices.get(vif.id))
                self._bind(run, vif, target, profile)

    def _bind(self, run: Run, vif: Vif, target: Selection, profile: dict[str, Any]) -> None:
        # The move continues if a user has deleted the port meanwhile.
        with suppress(errors.PortNotFound):
            binding = run.services.network.create_binding(run.context, vif.id, target.host, vif.vnic_type, profile)
            self._note_binding(run, vif, binding)

    def _note_binding(self, run: Run, vif: Vif, binding: PortBinding) -> None:
        """Notes what later steps must know of a port's binding at the target."""

    @abstractmethod
    def _ask(self, run: Run, host: str) -> MigrationContext:
        """Has the host check the move and claim the server's resources. Returns its claim."""

    def _try_next_host(self, run: Run, cause: Exception) -> bool:
        """Abandons the present target, and chooses the next alternate that Placement accepts. Returns False if there is none."""
        memory, former = run.memory, run.memory.target_host
        while memory.alternates:
            alternate, memory.alternates = memory.alternates[0], memory.alternates[1:]
            try:
                self._claim(run, alternate)
            except errors.ClaimRefused:
                continue
            LOG.info("Move %s tries its next alternate host: %r", run.move.id, cause)
            memory.selection = alternate
            memory.bound_hosts.append(former)
            run.save(also=lambda connection: note_destination(connection, run))
            self._delete_bindings(run, former)
            # Maybe the failed call took effect, and only its answer was lost.
            hardware.release_claim_if_there(run, former, self.name)
            return True
        return False

    def _claim(self, run: Run, target: Selection) -> None:
        instance = run.source_instance()
        run.services.placement.claim(
            run.uuid, target.allocation_request.allocations, instance.project_id, instance.user_id
        )

    def _delete_bindings(self, run: Run, host: str) -> None:
        if host == run.memory.source_host:
            return
        for vif in run.source_instance().network_info:
            run.services.network.delete_binding(run.context, vif.id, host)

    def undo(self, run: Run) -> None:
        # There may be bindings that were not recorded, but only for the present target and for those before.
        for host in dict.fromkeys([run.memory.target_host, *run.memory.bound_hosts]):
            self._delete_bindings(run, host)
            hardware.release_claim(run, host, self.name)
        clear_stash(run)
        groups.release(run.services, run.memory.group, run.uuid)


class ReserveTarget(ReserveHost):
    """Makes empty attachments of the volumes, too: the volumes are connected when the guest is at the target."""

    name = "ReserveTarget"
    reads = ReserveHost.reads | {"source_storage"}
    writes = ReserveHost.writes | {"attachments", "shared"}
    makes = ReserveHost.makes | {Thing.ATTACHMENT}
    event: ClassVar[EventNames] = events.RESERVE_TARGET

    def _notified(self, run: Run) -> AbstractContextManager[None]:
        return _notified_of_preparing(run)

    def _make_reservations(self, run: Run, target: Selection) -> None:
        super()._make_reservations(run, target)
        for _device, volume_id in volumes(run.source_devices()):
            pair = run.memory.pair(volume_id)
            if pair.target is None:
                pair.target = reserve_once(run, volume_id, run.source_devices())

    def _ask(self, run: Run, host: str) -> MigrationContext:
        memory = run.memory
        if memory.is_same_host and memory.migration_type != "resize" and not memory.migrates_to_same_host:
            raise errors.ClaimRefused(
                f"Server {run.uuid} can't be migrated to the host that it is on.", details=f"host {host}"
            )
        memory.shared = shared_with(run, host)
        return run.target_computes.prep_snapshot_based_resize_at_dest(
            run.context,
            host,
            token=run.token(self.name),
            instance=with_new_flavor(run),
            block_devices=run.source_devices(),
            same_host=memory.is_same_host,
            shared=memory.shared,
        )

    def undo(self, run: Run) -> None:
        for pair in run.memory.attachments:
            if pair.target is not None:
                run.services.volumes.delete_attachment(run.context, pair.target)
                pair.target = None
        if volumes(run.source_devices()):
            delete_orphaned_attachments(run, {device.attachment_id for device in run.source_devices()})
        super().undo(run)


@contextmanager
def _notified_of_preparing(run: Run) -> Iterator[None]:
    memory, instance = run.memory, run.source_instance()
    run.services.notifier.instance_exists(run.context, instance, host=memory.target_host)
    with notified(run, "resize_prep", memory.target_host, instance, new_flavor=memory.new_flavor, failing="resize"):
        yield


def clear_stash(run: Run) -> None:
    """Clears the move from the source's record of the server, so that external events go only to its own host again."""
    instances.update(
        run.source_database,
        run.uuid,
        migration_context=None,
        old_flavor=None,
        new_flavor=None,
        old_vm_state=None,
    )


def _carries_firmware(run: Run) -> bool:
    """Whether the guest has firmware or TPM state."""
    return firmware.of_instance(run.source_instance()).keeps_state


def with_new_flavor(run: Run) -> Instance:
    memory = run.memory
    asking = hardware.asking(run.services.conf, run.source_instance(), memory.new_flavor)
    mappings = memory.destination.allocation_request.mappings
    return dataclasses.replace(
        asking,
        pci_requests=at_host(run.services, asking.pci_requests, memory.port_requests, mappings),
        flavor=run.memory.new_flavor,
        new_flavor=run.memory.new_flavor,
        old_flavor=run.memory.old_flavor,
    )
