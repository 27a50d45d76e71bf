"""A host's part in a live migration. `operations.live_migration` calls one method of the endpoint after the other.

An order that changes something has a token, and takes effect once for a migration. Calls that only look, abort or force
completion go to the hypervisor at once: they must not wait for the order that they concern.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from causeway import errors
from causeway.compute.guests import guest, plugging, tpm_keys, volume_keys
from causeway.compute.handover import actions
from causeway.compute.handover.port_devices import travelling
from causeway.compute.host import Host
from causeway.compute.host.claims import claim_for_move
from causeway.compute.host.fence import fenced
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, OperationToken
from causeway.model.states import PowerState
from causeway.rpc.compute.live_calls import GuestPresence, LiveCheck, LiveOutcome
from causeway.virt.driver import ROOT_DISK, RootDisk
from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence

LOG = logging.getLogger(__name__)

_MIB, _GIB = 1024**2, 1024**3
# The time that a migration may take grows with memory and disks. Each counts as at least this many GiB, as in Nova.
_LEAST_GIB = 2
# A source shows one of these if the guest has not left, or is returning. A paused guest may have left: maybe its user paused it.
_NOT_GONE = (Presence.RUNNING, Presence.INCOMING)
# After each of these orders, the migration no longer runs at its source.
_ENDS = ("live_migration", "rollback_live_migration_at_source", "post_live_migration_at_source")


class LiveEndpoint:
    """RPC: the steps of live migrations, under Nova's names where it has them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.fence = host.fence

    # between cells: do the hypervisors reach one another?

    def live_address(self, context: RequestContext, *, source: LiveSource) -> LiveTarget:  # noqa: ARG002
        """At the target. Raises ClaimRefused if such a guest can't be received live."""
        if not self.host.driver.supports_live_migration:
            raise errors.ClaimRefused("The chosen host does not migrate guests live.", details=f"host {self.host.name}")
        self.host.driver.check_live_target(source)
        return self.host.driver.live_address()

    def try_live_address(self, context: RequestContext, *, target: LiveTarget) -> None:  # noqa: ARG002
        """At the source. Raises HostUnreachable if its hypervisor does not reach the target's."""
        self.host.driver.try_live_address(target)

    # at the source

    def check_can_live_migrate_source(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        block_migration: bool | None,
    ) -> LiveSource:
        host = self.host
        if not host.driver.supports_live_migration:
            raise errors.ClaimRefused("The server's host does not migrate guests live.", details=f"host {host.name}")
        source = host.driver.live_source(instance)
        source.block_migration = block_migration
        has_disks = bool(source.disks) or not is_volume_backed(block_devices)
        if block_migration is False and has_disks and not source.shared:
            raise errors.ClaimRefused(
                f"Server {instance.uuid} has local disks, and its hosts share no storage: it can only go with block migration."
            )
        if block_migration and not has_disks:
            raise errors.ClaimRefused(
                f"Server {instance.uuid} has no local disks: it can only go without block migration."
            )
        return source

    @fenced
    def live_migration(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        target: LiveTarget,
        options: LiveOptions,
    ) -> LiveOutcome:
        """Sends the guest. Returns a failure instead of raising it, so that a repeated order does not send the guest again."""
        host = self.host
        local = host.conf.libvirt
        options = dataclasses.replace(
            options,
            bandwidth=local.live_migration_bandwidth,
            post_copy=local.live_migration_permit_post_copy,
            auto_converge=local.live_migration_permit_auto_converge,
            tls=local.live_migration_with_native_tls,
        )
        with host.lock(instance.uuid):
            volumes = guest.volumes_of(block_devices)
            spec = guest.spec_of(host, context, instance, instance.network_info, volumes, block_devices=block_devices)
            report = _Progress(host, context, token, instance)
            try:
                self._begin(token, instance.uuid)
                host.driver.live_migrate(travelling(spec), target, options, report)
            except errors.CausewayError as failure:
                return LiveOutcome(failure.to_wire(), report.bytes_done)
        return LiveOutcome(None, report.bytes_done)

    def live_migration_abort(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,
        instance_uuid: str,
    ) -> None:
        """Does nothing if this migration has ended: a late order must not abort another migration of the guest."""
        try:
            with self._under_way(token, instance_uuid):
                self.host.driver.abort_live_migration(instance_uuid)
        except errors.ClaimRefused as refusal:
            LOG.info("Live migration %s is not aborted: %s", token.operation_id, refusal.message)

    def live_migration_force_complete(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,
        instance_uuid: str,
    ) -> None:
        """Raises ClaimRefused if this migration has ended: a late order must not force another migration of the guest."""
        post_copy: bool = self.host.conf.libvirt.live_migration_permit_post_copy
        with self._under_way(token, instance_uuid):
            self.host.driver.force_live_migration(instance_uuid, post_copy=post_copy)

    def _begin(self, token: OperationToken, uuid: str) -> None:
        """Notes which migration of the guest begins. Raises GuestFailed if another one is running."""
        before = self.host.departures.begin(token.operation_id, uuid)
        if before not in (None, token.operation_id) and self.host.driver.live_progress(uuid) is not None:
            raise errors.GuestFailed(
                f"An earlier live migration of server {uuid} is still running.", details=str(before)
            )

    @contextmanager
    def _under_way(self, token: OperationToken, uuid: str) -> Iterator[None]:
        """Keeps other migrations of the guest from beginning. Raises ClaimRefused if this one has ended here."""
        with self.host.departures.of(token.operation_id, uuid) as is_known:
            if not is_known:
                for end in _ENDS:
                    self.fence.refuse_after(token, end)
            yield

    @fenced
    def post_live_migration_at_source(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        host = self.host
        with host.lock(instance.uuid):
            if host.driver.live_progress(instance.uuid) is not None:
                raise errors.GuestUnclear(
                    f"The live migration of server {instance.uuid} is still running at its source.",
                    details=f"host {host.name}",
                )
            if (shown := host.driver.presence(instance.uuid)) in _NOT_GONE:
                raise errors.GuestUnclear(
                    f"The guest of server {instance.uuid} has not left the source of its live migration, so it is not deleted.",
                    details=f"host {host.name} shows it {shown}; run `causeway audit` to see where else it is",
                )
            devices = guest.with_connections(host, context, block_devices)
            volumes = [device for device in guest.volumes_of(devices) if device.connection_info]
            host.driver.destroy(instance.uuid, instance.network_info, volumes, destroy_disks=True)
            host.claims.release_others(instance.uuid, token.migration_uuid)
            host.departures.end(token.operation_id, instance.uuid)

    @fenced
    def rollback_live_migration_at_source(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,
        instance_uuid: str,
    ) -> None:
        """Aborts the migration. The record of this order makes the fence refuse a late `live_migration` (`fence.UNDONE_BY`)."""
        departures = self.host.departures
        try:
            with departures.of(token.operation_id, instance_uuid):
                self.host.driver.abort_live_migration(instance_uuid)
        except errors.ClaimRefused as refusal:
            LOG.info("Live migration %s is not aborted: %s", token.operation_id, refusal.message)
        departures.end(token.operation_id, instance_uuid)

    # at the target

    @fenced
    def check_can_live_migrate_destination(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source: LiveSource,
    ) -> LiveCheck:
        host = self.host
        if not host.driver.supports_live_migration:
            raise errors.ClaimRefused("The chosen host does not migrate guests live.", details=f"host {host.name}")
        with host.lock(instance.uuid):
            actions.require_nothing_of(
                host, instance.uuid, has_guest=host.driver.presence(instance.uuid) is not Presence.ABSENT
            )
            host.driver.check_live_target(source)
            if not _is_shared(host, source):
                _check_room(host, source)
            actions.check_volumes(host, context, block_devices)
            tpm_keys.check(host, context, instance)
            claimed = claim_for_move(host.claims, instance, token.migration_uuid, host.name)
        return LiveCheck(claimed, host.driver.volume_connector())

    @fenced
    def pre_live_migration(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source: LiveSource,
    ) -> LiveTarget:
        host = self.host
        with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
            instance = host.claims.use(instance, token.migration_uuid)
            volumes = guest.volumes_of(block_devices)
            for volume in volumes:
                host.driver.check_volume_connectable(volume.connection_info or {})
                volume_keys.hold(host, context, volume)
            root = next((each for each in source.disks if each.name == ROOT_DISK), None)
            root_disk = None
            if root is not None:
                image_id = root.base_image_id
                base = host.image_cache.fetch(context, image_id) if image_id is not None else None
                root_disk = RootDisk(base=base, base_image_id=image_id, size_gb=instance.flavor.root_gb)
            spec = guest.spec_of(
                host,
                context,
                instance,
                instance.network_info,
                volumes,
                block_devices=block_devices,
                root_disk=root_disk,
            )
            with plugging.before_arrival(host, watch, instance):
                return host.driver.prepare_live_target(travelling(spec), source)

    @fenced
    def post_live_migration_at_destination(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        host = self.host
        with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
            claimed = host.claims.use(instance, token.migration_uuid)
            vifs = guest.take_over_ports(host, context, claimed)
            for device in guest.volumes_of(block_devices):
                if device.attachment_id is not None:
                    host.volumes.complete_attachment(context, device.attachment_id)
            facts = host.driver.inspect(instance.uuid)
            if facts.power_state is None:
                raise errors.CopyNotUsable(
                    f"The guest of server {instance.uuid} is not at the target of its live migration any more.",
                    details=f"host {host.name}",
                )
            host.driver.settle_disks(instance.uuid)
            if facts.power_state is PowerState.RUNNING:
                # It stood still for the end of its way; an emulated guest, for all of it.
                host.driver.set_clock(instance.uuid)
            vifs = plugging.after_arrival(host, watch, vifs)
        return GuestOutcome(
            facts.power_state,
            vifs,
            guest.volumes_of(block_devices),
            numa_topology=claimed.numa_topology,
            pci_devices=claimed.pci_devices,
        )

    @fenced
    def rollback_live_migration_at_destination(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        host = self.host
        with host.lock(instance.uuid):
            if host.driver.presence(instance.uuid).is_alive:
                raise errors.CopyNotUsable(
                    f"The guest of server {instance.uuid} lives at the target of its live migration, so it is not deleted.",
                    details=f"host {host.name}",
                )
            devices = guest.with_connections(host, context, block_devices)
            volumes = [device for device in guest.volumes_of(devices) if device.connection_info]
            host.driver.destroy(instance.uuid, instance.network_info, volumes, destroy_disks=True)
            host.claims.release(instance.uuid, token.migration_uuid)

    # at both

    def guest_presence(self, context: RequestContext, *, instance_uuid: str) -> GuestPresence:  # noqa: ARG002
        driver = self.host.driver
        # First look for the job: if it ends between the two calls, the second one sees its result.
        has_job = driver.live_progress(instance_uuid) is not None
        presence = driver.presence(instance_uuid)
        return GuestPresence(presence, has_job, driver.live_arrival(instance_uuid) if presence.is_alive else None)


def _is_shared(host: Host, source: LiveSource) -> bool:
    """Whether the guest's local disks stay where they are. Raises ClaimRefused if the request wants it otherwise."""
    if not source.disks:
        return False
    is_shared = bool(source.shared) and host.driver.reaches_disks(source.shared)
    if source.block_migration and is_shared:
        raise errors.ClaimRefused("Block migration can not be used with shared storage.", details=f"host {host.name}")
    if source.block_migration is False and not is_shared:
        raise errors.ClaimRefused(
            "The server's host and the chosen one share no storage: the server can only go with block migration.",
            details=f"host {host.name}",
        )
    return is_shared


def _check_room(host: Host, source: LiveSource) -> None:
    """Raises ClaimRefused if there is too little disk space for the guest.

    Before microversion 2.25 the request says whether disk space may be overcommitted.
    """
    if source.disk_over_commit is None or not source.disks:
        return
    wanted = source.disk_bytes if source.disk_over_commit else sum(each.size for each in source.disks)
    room = host.driver.disk_room(over_commit=source.disk_over_commit) - host.conf.reserved_host_disk_mb * _MIB
    if wanted > room:
        raise errors.ClaimRefused(
            "The chosen host has no room for the server's disks.", details=f"host {host.name}: {wanted} of {room} bytes"
        )


class _Progress:
    """Reports the progress of a migration to the conductor. Ends a migration that takes too long or is no longer wanted."""

    def __init__(self, host: Host, context: RequestContext, token: OperationToken, instance: Instance) -> None:
        self._host, self._context, self._instance = host, context, instance
        self._token = msgspec.structs.replace(token, heeds_rate=True)
        # Bytes a second; 0: the rate of the host's configuration.
        self._rate = 0.0
        self._next_report = 0.0
        self._began = host.clock.monotonic()
        self._is_over_time = self._is_post_copy = False
        self.bytes_done: int | None = None

    def __call__(self, progress: LiveProgress) -> None:
        injector.reach("live.transfer.in")
        self.bytes_done = progress.memory_processed + progress.disk_processed
        self._check_time(progress)
        if self._host.stopping.is_set():
            raise errors.Interrupted("The compute service of the server's host stopped before the guest had left.")
        switches = progress.post_copy and not self._is_post_copy
        if self._host.clock.monotonic() < self._next_report and not switches:
            return
        self._is_post_copy = progress.post_copy
        pause: float = self._host.conf.libvirt.live_migration_monitor_interval
        try:
            rate = self._host.conductor.report_live_progress(self._context, token=self._token, progress=progress)
            self._set_rate(rate or 0.0)
        except errors.TakenOver:
            # The conductor that took the operation over joins the migration, which continues without reports.
            pause = float("inf")
        except (errors.Cancelled, errors.StateChanged):
            raise
        except errors.CausewayError:
            # A migration must not fail because its progress can't be reported.
            pause = max(pause, 60.0)
        self._next_report = self._host.clock.monotonic() + pause

    def _set_rate(self, rate: float) -> None:
        own: float = self._host.conf.libvirt.live_migration_bandwidth * _MIB
        if rate == self._rate or self._is_post_copy:
            return
        try:
            self._host.driver.limit_live_migration(self._instance.uuid, min(rate, own) if rate and own else rate or own)
            self._rate = rate
        except errors.GuestFailed as failure:
            # The next report tries again to set the rate.
            LOG.info(
                "The transfer of guest %s keeps its old rate: %s %s",
                self._instance.uuid,
                failure.message,
                failure.details,
            )

    def _check_time(self, progress: LiveProgress) -> None:
        local = self._host.conf.libvirt
        size = max(self._instance.flavor.memory_mb / 1024, _LEAST_GIB)
        size += max(progress.disk_total / _GIB, _LEAST_GIB) if progress.disk_total else 0
        limit = local.live_migration_completion_timeout * size
        if self._is_over_time or progress.post_copy or not limit or self._host.clock.monotonic() < self._began + limit:
            return
        self._is_over_time = True
        if local.live_migration_timeout_action == "abort":
            raise errors.Cancelled(
                f"The live migration of server {self._instance.uuid} took more than {limit:.0f} seconds."
            )
        post_copy = local.live_migration_permit_post_copy
        self._host.driver.force_live_migration(self._instance.uuid, post_copy=post_copy)
