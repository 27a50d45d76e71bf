"""What a conductor asks of computes in a live migration: the target makes ready, the guest goes, both say what they see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import GuestOutcome, MoveToken
from causeway.rpc.client import RpcClient
from causeway.virt.live import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence

T = TypeVar("T")

NOTHING = type(None)
VERSION = versions.LIVE_RPC


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


class ComputeLive:
    """A part of `causeway.rpc.compute.ComputeClient`."""

    _rpc: RpcClient

    def live_address(self, context: RequestContext, host: str, *, source: LiveSource) -> LiveTarget:
        """Where other hypervisors reach this host's. Raises ClaimRefused if such a guest can't be received live there."""
        return self._ask_if_known("live_address", LiveTarget, context, host, source=source)

    def try_live_address(self, context: RequestContext, host: str, *, target: LiveTarget) -> None:
        """Raises HostUnreachable unless the host's hypervisor reaches the one at that address."""
        self._ask_if_known("try_live_address", NOTHING, context, host, target=target)

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
        return self._call(
            context,
            host,
            "check_can_live_migrate_source",
            LiveSource,
            monitor=False,
            instance=instance,
            block_devices=block_devices,
            block_migration=block_migration,
        )

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
        return self._call(
            context,
            host,
            "check_can_live_migrate_destination",
            LiveCheck,
            token=token,
            instance=instance,
            block_devices=block_devices,
            source=source,
        )

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
        return self._call(
            context,
            host,
            "pre_live_migration",
            LiveTarget,
            token=token,
            instance=instance,
            block_devices=block_devices,
            source=source,
        )

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
        return self._call(
            context,
            host,
            "live_migration",
            LiveOutcome,
            token=token,
            instance=instance,
            block_devices=block_devices,
            target=target,
            options=options,
        )

    def guest_presence(self, context: RequestContext, host: str, *, instance_uuid: str) -> GuestPresence:
        """What the hypervisor shows of the guest just now."""
        return self._call(context, host, "guest_presence", GuestPresence, monitor=False, instance_uuid=instance_uuid)

    def live_migration_abort(self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str) -> None:
        """Ends a migration that is under way at the source; there is none: nothing happens."""
        self._call(context, host, "live_migration_abort", NOTHING, token=token, instance_uuid=instance_uuid)

    def live_migration_force_complete(
        self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str
    ) -> None:
        """The guest is to go now."""
        self._call(context, host, "live_migration_force_complete", NOTHING, token=token, instance_uuid=instance_uuid)

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
        return self._call(
            context,
            host,
            "post_live_migration_at_destination",
            GuestOutcome,
            token=token,
            instance=instance,
            block_devices=block_devices,
        )

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
        self._call(
            context,
            host,
            "post_live_migration_at_source",
            NOTHING,
            token=token,
            instance=instance,
            block_devices=block_devices,
        )

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
        self._call(
            context,
            host,
            "rollback_live_migration_at_destination",
            NOTHING,
            token=token,
            instance=instance,
            block_devices=block_devices,
        )

    def rollback_live_migration_at_source(
        self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str
    ) -> None:
        """The guest does not go any more: an order that comes late is refused from here on."""
        self._call(
            context, host, "rollback_live_migration_at_source", NOTHING, token=token, instance_uuid=instance_uuid
        )

    def _call(
        self, context: RequestContext, host: str, method: str, result: type[T], *, monitor: bool = True, **given: Any
    ) -> T:
        return self._rpc.call(context, method, result=result, server=host, monitor=monitor, version=VERSION, **given)

    def _ask_if_known(self, method: str, result: type[T], context: RequestContext, host: str, **given: Any) -> T:
        """Raises ClaimRefused for a host of an older version."""
        too_old = errors.ClaimRefused(
            "A host is of a version that can't say whether it reaches another cell's.", details=f"host {host}"
        )
        return self._rpc.order_if_known(
            context, method, version=versions.LIVE_REACH_RPC, too_old=too_old, result=result, server=host, **given
        )
