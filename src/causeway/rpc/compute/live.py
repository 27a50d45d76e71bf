"""What a conductor asks of computes in a live migration: the target makes ready, the guest goes, both say what they see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import GuestOutcome, MoveToken
from causeway.rpc.declare import Client, call
from causeway.virt.live import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence


@dataclass
class LiveCheck:
    """A host that would receive the guest: what it claimed, and what the volume service must know of it."""

    context: MigrationContext
    connector: dict[str, Any] = field(default_factory=dict)


@dataclass
class LiveOutcome:
    """How the migration ended by the word of the source's hypervisor, which decides nothing. ``failure``: as errors cross RPC."""

    failure: dict[str, Any] | None = None
    bytes_done: int | None = None


@dataclass
class GuestPresence:
    """What a hypervisor shows of a guest. ``has_job``: it is migrating it to another host.

    ``came``: how much came of a guest that was migrated here; None: nobody counted it, or the host is of an older version.
    """

    presence: Presence
    has_job: bool = False
    came: LiveProgress | None = None


def _cannot_say(host: str, _call: str) -> errors.ClaimRefused:
    return errors.ClaimRefused(
        "A host is of a version that can't say whether it reaches another cell's.", details=f"host {host}"
    )


order = call(since="1.5", monitor=True)


class LiveCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.7", monitor=True, too_old=_cannot_say)
    def live_address(self, context: RequestContext, host: str, *, source: LiveSource) -> LiveTarget:
        """Where other hypervisors reach this host's. Raises ClaimRefused if such a guest can't be received live there."""

    @call(since="1.7", monitor=True, too_old=_cannot_say)
    def try_live_address(self, context: RequestContext, host: str, *, target: LiveTarget) -> None:
        """Raises HostUnreachable unless the host's hypervisor reaches the one at that address."""

    @call(since="1.5")
    def check_can_live_migrate_source(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        block_migration: bool | None,
    ) -> LiveSource:
        """What the target must know of the guest. Raises ClaimRefused if it can't leave so."""

    @order
    def check_can_live_migrate_destination(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source: LiveSource,
    ) -> LiveCheck:
        """Claims what the server asks for. Raises ClaimRefused if the guest can't be received there."""

    @order
    def pre_live_migration(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source: LiveSource,
    ) -> LiveTarget:
        """Makes what must be at the target before the guest comes. ``block_devices``: connected to the target."""

    @order
    def live_migration(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        target: LiveTarget,
        options: LiveOptions,
    ) -> LiveOutcome:
        """Has the guest go to the target, once. ``instance``, ``block_devices``: as they are to be there."""

    @call(since="1.5")
    def guest_presence(self, context: RequestContext, host: str, *, instance_uuid: str) -> GuestPresence:
        """What the hypervisor shows of the guest just now."""

    @order
    def live_migration_abort(self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str) -> None:
        """Ends a migration that is under way at the source; there is none: nothing happens."""

    @order
    def live_migration_force_complete(
        self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str
    ) -> None:
        """The guest is to go now."""

    @order
    def post_live_migration_at_destination(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """The target takes over ports and volumes of the guest, which runs there."""

    @order
    def post_live_migration_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Nothing of the server stays at its source. Only for a guest that runs at its target."""

    @order
    def rollback_live_migration_at_destination(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Nothing of the server stays at the target. Raises CopyNotUsable if its guest is alive there: it is the only one."""

    @order
    def rollback_live_migration_at_source(
        self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str
    ) -> None:
        """The guest does not go any more: an order that comes late is refused from here on."""
