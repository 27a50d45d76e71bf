"""A host's part in a near-live migration: the source saves the guest and sends memory and disks, the target wakes the guest.

The guest stands still meanwhile, but it does not boot. It resumes at its target only behind the pivot of the migration. Until
then the source can wake it, because it has memory and disks of the same moment. A guest that its user has suspended is saved
already, and nobody wakes it: it is off at both hosts, and its memory is stored beside its disks.
"""

from __future__ import annotations

from collections.abc import Callable

from causeway import errors
from causeway.compute.guests import guest, plugging
from causeway.compute.handover import actions, disk_transfer
from causeway.compute.handover.handed_over import HandedOver, discard_rounds, end_transfer
from causeway.compute.handover.port_devices import travelling
from causeway.compute.handover.verify import require_disks
from causeway.compute.host import Host
from causeway.compute.host.fence import fenced, fenced_and_then
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, GuestOutcome, OperationToken, Snapshot, SourceOutcome
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import PowerState, VmState
from causeway.virt.driver import MEMORY, ROOT_DISK, GuestFacts, GuestSpec
from causeway.virt.live_guest import LiveSource

_LIVING = (PowerState.RUNNING, PowerState.PAUSED)


class NearLiveEndpoint:
    """RPC: the steps of near-live migrations. Each order takes effect once for a migration (`fence`)."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.fence = host.fence

    def check_can_save_guest(self, context: RequestContext, *, instance: Instance) -> LiveSource:  # noqa: ARG002
        """Returns a description of the guest for the target. Raises GuestFailed if its memory can't be saved."""
        self._require_saved_memory()
        return self.host.driver.live_source(instance)

    def check_can_wake_guest(self, context: RequestContext, *, source: LiveSource) -> None:  # noqa: ARG002
        """Raises ClaimRefused if such a guest can't be woken here."""
        self._require_saved_memory()
        self.host.driver.check_can_wake(source)

    @fenced_and_then(discard_rounds)
    def save_guest_at_source(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        memory_image_id: str | None,
        image_id: str | None,
        disk_image_ids: dict[str, str],
        since: int | None,
        shares: bool = False,
    ) -> SourceOutcome:
        """Saves the guest, sends or offers its memory and disks, and stashes the disks.

        ``since``: the last round that the target has; only later changes are sent. ``memory_image_id`` None: offers memory and
        disks instead of sending them.
        """
        host, uuid = self.host, instance.uuid
        outcome = SourceOutcome(_power_state_between(instance.vm_state is VmState.SUSPENDED))
        images = disk_image_ids | ({ROOT_DISK: image_id} if image_id is not None else {})
        with host.lock(uuid):
            host.rounds.end(token.operation_id)
            memory = actions.save_memory(host, instance, block_devices)
            outcome.shared = host.driver.shared_disks(uuid) if shares else {}
            if memory_image_id is None:
                outcome.offer = disk_transfer.offer(
                    host, context, token, instance, block_devices, since, memory, outcome.shared.keys()
                )
            else:
                saved = disk_transfer.send_memory(host, context, token, memory_image_id, memory)
                sent = {
                    name: disk_transfer.send(host, context, token, instance, image, name, since=since)
                    for name, image in images.items()
                }
                outcome.snapshot, outcome.disks = sent.pop(ROOT_DISK, None), sent | {MEMORY: saved}
            actions.destroy_and_stash_disks(host, instance, block_devices)
        return outcome

    @fenced_and_then(end_transfer)
    def wake_guest_at_dest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        disks: dict[str, Snapshot],
        offer: DiskOffer | None = None,
        is_suspended: bool = False,
        shared: dict[str, SharedDisk] | None = None,
    ) -> GuestOutcome:
        """Makes the guest, which stands still until `let_guest_go_on`. ``disks``: the snapshots, also that of its memory.

        ``is_suspended``: the guest is off until its user resumes it. ``offer``: the source's offer of everything, if it sent
        nothing. Raises DiskTransferBroken if the offer can't be fetched.
        """
        host, handed_over = self.host, HandedOver(snapshot, disks, offer)
        sent = handed_over.sent
        if MEMORY not in sent or (ROOT_DISK not in {*sent, *(shared or {})} and not is_volume_backed(block_devices)):
            raise errors.DiskTransferFailed(
                f"The source did not send all disks and the memory of server {instance.uuid}."
            )

        def receive(spec: GuestSpec) -> None:
            paths = handed_over.receive(host, context, token, instance)
            spec.memory = paths.pop(MEMORY)
            wanted = actions.wanted_disks(host, block_devices)
            disk_transfer.received(host, context, token, instance, sent, paths, wanted, shared).put_into(spec)
            actions.adopt_completed(host, spec, token.operation_id)

        instance = host.claims.use(instance, token.migration_uuid)
        with host.lock(instance.uuid):
            facts = host.driver.inspect(instance.uuid)
            is_complete = host.driver.saved_memory(instance.uuid) is not None
            if facts.power_state in _LIVING and not is_complete:
                # The guest was resumed already: it is the server's only guest.
                return actions.complete_running_guest(host, context, instance, block_devices)
            if not is_complete and (facts.power_state is not None or facts.has_disks):
                # An earlier attempt was interrupted; what it connected is still connected.
                devices = guest.with_connections(host, context, block_devices)
                keeps = host.copies.is_taken(token.operation_id)
                actions.destroy_with_disks(host, instance, devices, keeps_disks=keeps)
            outcome = _make(
                host, context, instance, block_devices, None if is_complete else receive, is_suspended=is_suspended
            )
        outcome.bytes_done = handed_over.size
        return outcome

    @fenced
    def let_guest_go_on(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool = False,
    ) -> GuestFacts:
        """Resumes the guest, behind the pivot. Returns what is on the host for the server.

        ``is_paused``: the guest stays paused, because its user paused it. ``is_suspended``: the guest is only checked. Raises
        CopyNotUsable if a suspended guest lacks something that it needs to be resumed.
        """
        with self.host.lock(instance.uuid):
            if is_suspended:
                return _check_suspended(self.host, instance, block_devices)
            return _resume_guest(self.host, context, instance, block_devices, is_paused=is_paused)

    @fenced
    def wake_guest_at_source(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool = False,
    ) -> GuestOutcome:
        """Resumes the guest at its source. Boots it if there is no saved memory (it was not saved, or has crashed since).

        ``is_suspended``: the guest is off again, with its memory.
        """
        host, uuid = self.host, instance.uuid
        with host.lock(uuid):
            host.offers.end_all(uuid)
            host.rounds.discard_all(uuid)
            facts = host.driver.inspect(uuid)
            memory = host.driver.saved_memory(uuid, stashed=not facts.has_disks)
            is_saved = facts.power_state is not PowerState.RUNNING and memory is not None
            if is_suspended and facts.power_state is not None and facts.has_disks:
                # The guest never left, or an earlier attempt restored it.
                outcome = actions.complete_running_guest(host, context, instance, block_devices)
                outcome.power_state = _power_state_between(is_suspended)
                return outcome
            if is_saved and not facts.has_disks:
                host.driver.restore_stashed_disks(uuid)
            if is_saved or facts.power_state in _LIVING:
                if is_saved:
                    outcome = _make(host, context, instance, block_devices, None, is_suspended=is_suspended)
                else:
                    # The guest never left, or an earlier attempt has woken it.
                    outcome = actions.complete_running_guest(host, context, instance, block_devices)
                if not is_suspended:
                    facts = _resume_guest(host, context, instance, block_devices, is_paused=is_paused)
                    outcome.power_state = facts.power_state or PowerState.SHUTDOWN
                return outcome
        return actions.restore_from_stashed_disks(host, context, instance, block_devices, power_on=not is_suspended)

    def _require_saved_memory(self) -> None:
        if not self.host.driver.supports_saved_memory:
            raise errors.ClaimRefused("The host's hypervisor can't save the memory of guests.")


def _power_state_between(is_suspended: bool) -> PowerState:
    """Returns the power state of a guest that has its memory but does not run."""
    return PowerState.SHUTDOWN if is_suspended else PowerState.PAUSED


def _make(
    host: Host,
    context: RequestContext,
    instance: Instance,
    block_devices: list[BlockDevice],
    receive: Callable[[GuestSpec], None] | None,
    *,
    is_suspended: bool = False,
) -> GuestOutcome:
    """Makes the guest here with its ports and volumes, standing still. ``is_suspended``: it is off instead, and can be resumed.

    ``receive``: puts disks and memory into the spec; None: both are in their places.
    """
    with host.vif_events.watch(instance.uuid) as watch:
        vifs = guest.take_over_ports(host, context, instance)
        try:
            with guest.connected_volumes(host, context, block_devices) as volumes:
                spec = travelling(
                    guest.spec_of(
                        host, context, instance, vifs, volumes, block_devices=block_devices, power_on=not is_suspended
                    )
                )
                if receive is not None:
                    receive(spec)
                if is_suspended:
                    host.driver.define_suspended(spec)
                else:
                    host.driver.wake(spec, vifs_plugged=plugging.before_start(host, watch, spec.vifs))
        finally:
            host.image_cache.discard_received(instance.uuid)
    ports = plugging.as_plugged(watch, vifs, not is_suspended)
    name = guest.name_here(host, instance)
    return GuestOutcome(_power_state_between(is_suspended), ports, volumes, guest_name=name)


def _check_suspended(host: Host, instance: Instance, block_devices: list[BlockDevice]) -> GuestFacts:
    """Checks that a suspended guest can be resumed here, before the source's copy is deleted. Raises CopyNotUsable if not."""
    facts = host.driver.inspect(instance.uuid)
    if facts.power_state in _LIVING:
        # An administrator reset the server's state meanwhile, and somebody resumed the guest.
        return facts
    if host.driver.saved_memory(instance.uuid) is None:
        raise errors.CopyNotUsable(
            "The memory of the suspended server is missing at its target.", details=f"host {host.name}"
        )
    require_disks(host, instance, block_devices, stashed=False)
    return facts


def _resume_guest(
    host: Host, context: RequestContext, instance: Instance, block_devices: list[BlockDevice], *, is_paused: bool
) -> GuestFacts:
    driver, uuid = host.driver, instance.uuid
    power_state = driver.inspect(uuid).power_state
    if power_state not in _LIVING and driver.saved_memory(uuid) is not None:
        # The hypervisor was killed while the guest stood still, so the guest's disks still match its memory.
        _make(host, context, instance, block_devices, None)
        power_state = PowerState.PAUSED
    if power_state in _LIVING:
        driver.resume_woken(uuid, is_paused=is_paused)
    return driver.inspect(uuid)
