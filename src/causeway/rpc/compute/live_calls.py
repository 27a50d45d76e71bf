"""Calls of live and near-live migrations.

Live: the target prepares, the source sends the guest, and both report which of them has it.
Near-live: the source saves the guest, and the target wakes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, OperationToken, Snapshot, SourceOutcome
from causeway.model.shared_disk import SharedDisk
from causeway.rpc.compute.of_shared_disks import SHARING_DISKS, WITH_SHARED_DISKS
from causeway.rpc.declare import Client, IfSet, call
from causeway.virt.driver import GuestFacts
from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence


@dataclass
class LiveCheck:
    """The answer of a host that would receive the guest: its claim, and its connector for the volume service."""

    context: MigrationContext
    connector: dict[str, Any] = field(default_factory=dict)


@dataclass
class LiveOutcome:
    """How the migration ended, according to the source's hypervisor. It does not decide where the server is.

    ``failure``: the error in RPC's form; None if there was none.
    """

    failure: dict[str, Any] | None = None
    bytes_done: int | None = None


@dataclass
class GuestPresence:
    """What a hypervisor reports about a guest. ``has_job``: it is migrating the guest to another host.

    ``came``: how much of a guest that was migrated to this host has arrived; None if unknown.
    """

    presence: Presence
    has_job: bool = False
    came: LiveProgress | None = None


order = call(since="1.14", monitor=True)


class LiveCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @order
    def live_address(self, context: RequestContext, host: str, *, source: LiveSource) -> LiveTarget:
        """Returns the address at which other hypervisors reach that of this host.

        Raises ClaimRefused if this host can't receive such a guest live.
        """

    @order
    def try_live_address(self, context: RequestContext, host: str, *, target: LiveTarget) -> None:
        """Raises HostUnreachable if the host's hypervisor can't reach the one at that address."""

    @call(since="1.14")
    def check_can_live_migrate_source(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        block_migration: bool | None,
    ) -> LiveSource:
        """Returns a description of the guest for the target. Raises ClaimRefused if the guest can't leave live."""

    @order
    def check_can_live_migrate_destination(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source: LiveSource,
    ) -> LiveCheck:
        """Claims the server's resources at the target. Raises ClaimRefused if the target can't receive the guest."""

    @order
    def pre_live_migration(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source: LiveSource,
    ) -> LiveTarget:
        """Prepares the target for the guest. ``block_devices``: with connections to the target."""

    @order
    def live_migration(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        target: LiveTarget,
        options: LiveOptions,
    ) -> LiveOutcome:
        """Sends the guest to the target, at most once. ``instance``, ``block_devices``: as they are at the target."""

    @call(since="1.14")
    def guest_presence(self, context: RequestContext, host: str, *, instance_uuid: str) -> GuestPresence:
        """Returns what the hypervisor reports about the guest now."""

    @order
    def live_migration_abort(
        self, context: RequestContext, host: str, *, token: OperationToken, instance_uuid: str
    ) -> None:
        """Aborts the migration at the source, if one is under way."""

    @order
    def live_migration_force_complete(
        self, context: RequestContext, host: str, *, token: OperationToken, instance_uuid: str
    ) -> None:
        """Forces the migration to complete now."""

    @order
    def post_live_migration_at_destination(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """Has the target take over the ports and volumes of the guest, which runs there by now."""

    @order
    def post_live_migration_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Deletes everything of the server at its source. Only for a guest that runs at its target."""

    @order
    def rollback_live_migration_at_destination(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Deletes everything of the server at the target.

        Raises CopyNotUsable if the guest runs at the target, because that is the server's only guest.
        """

    @order
    def rollback_live_migration_at_source(
        self, context: RequestContext, host: str, *, token: OperationToken, instance_uuid: str
    ) -> None:
        """Ends the migration at the source. A late order to send the guest is refused from now on."""


class NearLiveCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @order
    def check_can_save_guest(self, context: RequestContext, host: str, *, instance: Instance) -> LiveSource:
        """Returns a description of the guest for a target. Raises GuestFailed if the guest's memory can't be saved."""

    @order
    def check_can_wake_guest(self, context: RequestContext, host: str, *, source: LiveSource) -> None:
        """Raises ClaimRefused if the host can't wake such a guest."""

    @call(since="1.14", monitor=True, newer=(SHARING_DISKS,))
    def save_guest_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        memory_image_id: str | None,
        image_id: str | None,
        disk_image_ids: dict[str, str],
        since: int | None,
        shares: IfSet[bool] = False,
    ) -> SourceOutcome:
        """Uploads the guest's memory and disks into images, and removes the guest from the host, which keeps both.

        ``since``: the round that the target has. ``memory_image_id`` None: offers everything to the target instead. Raises
        WarmCopyImpossible if the host does not know what changed since that round.
        """

    @call(since="1.14", monitor=True, newer=(WITH_SHARED_DISKS,))
    def wake_guest_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        disks: dict[str, Snapshot],
        offer: DiskOffer | None,
        is_suspended: bool,
        shared: IfSet[dict[str, SharedDisk] | None] = None,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes, and makes the guest with its memory. The guest stands still.

        ``is_suspended``: the guest is off, and the host keeps its memory for its resume. ``offer``: where to fetch memory and
        disks. Raises DiskTransferBroken if fetching fails.
        """

    @order
    def let_guest_go_on(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool,
    ) -> GuestFacts:
        """Resumes the target's guest, unless its user had paused or suspended it."""

    @order
    def wake_guest_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        is_paused: bool,
        is_suspended: bool,
    ) -> GuestOutcome:
        """Resumes the guest at its source, or leaves it suspended as before."""


def _keeps_ports(host: str, _method: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        "The host's compute service can't detach SR-IOV ports from a running guest until it is upgraded.",
        details=f"host {host}",
    )


class PortDeviceCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.17", monitor=True, too_old=_keeps_ports)
    def detach_port_devices(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance
    ) -> None:
        """Detaches the ports that are devices of the host from the guest, whose memory will travel. The host keeps its claim.

        Raises GuestFailed if the guest does not release one.
        """

    @call(since="1.17", monitor=True, too_old=_keeps_ports)
    def attach_port_devices(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance
    ) -> None:
        """Attaches these ports to the guest, which has come to the host or has stayed there, with devices of this host.

        Raises GuestUnclear if the guest is between two hosts, and ClaimRefused if the host holds no device for a port.
        """

    @call(since="1.17", monitor=True, too_old=_keeps_ports)
    def attach_missing_port_devices(self, context: RequestContext, host: str, *, instance: Instance) -> None:
        """The same for a server that no operation works on, and whose guest lacks such a port."""
