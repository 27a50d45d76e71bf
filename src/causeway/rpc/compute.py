"""What a conductor asks of the computes of one cell.

Every method is about one server on one host, may be repeated, and returns what is to be written down. Methods that belong to
a move carry its token.
"""

from __future__ import annotations

from typing import Any

from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.audit import HostContents
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import DiskMeasure, PreCheck
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import DiskOffer, GuestOutcome, MoveToken, Snapshot, SourceOutcome
from causeway.rpc import super_conductor
from causeway.rpc.client import RpcClient
from causeway.rpc.compute_devices import ComputeDevices
from causeway.rpc.compute_guests import NOTHING
from causeway.rpc.compute_inside import ComputeInside
from causeway.rpc.compute_live import ComputeLive
from causeway.rpc.compute_near_live import ComputeNearLive
from causeway.rpc.compute_rescue import ComputeRescue
from causeway.rpc.compute_volumes import ComputeVolumes
from causeway.rpc.compute_warm import ComputeWarm
from causeway.rpc.transport import Transport

TOPIC = "compute"
VERSION = "1.0"


class ComputeClient(
    ComputeDevices, ComputeInside, ComputeLive, ComputeNearLive, ComputeRescue, ComputeVolumes, ComputeWarm
):
    """The computes of one cell, over that cell's message queue."""

    def __init__(self, transport: Transport, version_cap: str | None = None) -> None:
        self._rpc = RpcClient(
            transport, TOPIC, version=VERSION, version_cap=version_cap, listens_at=super_conductor.TOPIC
        )

    # moves between cells: names from the field

    def prep_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> MigrationContext:
        """Claims the host for the server with ``instance.new_flavor`` and checks that its volumes can be connected."""
        return self._rpc.call(
            context,
            "prep_snapshot_based_resize_at_dest",
            result=MigrationContext,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
        )

    def prep_snapshot_based_resize_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image_id: str | None,
        disk_image_ids: dict[str, str],
        since: int | None = None,
        is_direct: bool = False,
    ) -> SourceOutcome:
        """Powers the guest off, uploads its root disk to an image (if given), and takes it off the host but for its disks.

        ``disk_image_ids``: images for its ephemeral disks, by name. ``since``: the target has that round; only what changed
        since is uploaded. Raises WarmCopyImpossible if the host does not know what did. ``is_direct``: nothing is uploaded, it
        is offered to the target; of hosts that have told that they can.
        """
        # Only servers with such disks need a compute that knows of them.
        more: dict[str, Any] = {"disk_image_ids": disk_image_ids} if disk_image_ids else {}
        if since is not None:
            more["since"] = since
        if is_direct:
            more["is_direct"] = True
        return self._rpc.call(
            context,
            "prep_snapshot_based_resize_at_source",
            result=SourceOutcome,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            image_id=image_id,
            **more,
        )

    @property
    def can_send_offered(self) -> bool:
        """Whether the version cap allows `send_offered`."""
        return self._rpc.can_send(versions.SEND_OFFERED_RPC)

    def send_offered(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, image_ids: dict[str, str]
    ) -> dict[str, Snapshot]:
        """The source uploads what it offers and its target can't fetch, each disk to the image that is named for it."""
        return self._rpc.call(
            context,
            "send_offered",
            result=dict[str, Snapshot],
            server=host,
            monitor=True,
            version=versions.SEND_OFFERED_RPC,
            token=token,
            instance=instance,
            image_ids=image_ids,
        )

    def finish_snapshot_based_resize_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot: Snapshot | None,
        power_on: bool,
        disks: dict[str, Snapshot],
        offer: DiskOffer | None = None,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes and makes the guest, from the snapshot if its root disk is local.

        ``disks``: the snapshots of its ephemeral disks, by name. ``offer``: where it fetches all of them instead. Raises
        DiskTransferBroken if it can't.
        """
        more: dict[str, Any] = {"disks": disks} if disks else {}
        if offer is not None:
            more["offer"] = offer
        return self._rpc.call(
            context,
            "finish_snapshot_based_resize_at_dest",
            result=GuestOutcome,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            snapshot=snapshot,
            power_on=power_on,
            **more,
        )

    def drop_move_at_dest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Undoes everything that a move made at its target: guest, disks, connections, claim. Also used by revert."""
        self._rpc.call(
            context,
            "drop_move_at_dest",
            result=NOTHING,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
        )

    def restore_at_source(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        """Brings the guest back from its stashed disks, with its ports and volumes. For a failed move and for revert."""
        return self._rpc.call(
            context,
            "restore_at_source",
            result=GuestOutcome,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            power_on=power_on,
        )

    def confirm_snapshot_based_resize_at_source(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance
    ) -> None:
        """Deletes the stashed disks and drops what the source still held for the server."""
        self._rpc.call(
            context,
            "confirm_snapshot_based_resize_at_source",
            result=NOTHING,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
        )

    # dry runs

    def check_move_to_host(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        timeout: float,
    ) -> list[PreCheck]:
        """What the host would say to a move of the server to it, with the flavor that ``instance`` has; changes nothing."""
        return self._rpc.call(
            context,
            "check_move_to_host",
            result=list[PreCheck],
            server=host,
            timeout=timeout,
            instance=instance,
            block_devices=block_devices,
        )

    def measure_disks(self, context: RequestContext, host: str, *, instance_uuid: str, timeout: float) -> DiskMeasure:
        """Bytes that a server's disks take on the host."""
        return self._rpc.call(
            context,
            "measure_disks",
            result=DiskMeasure,
            server=host,
            timeout=timeout,
            instance_uuid=instance_uuid,
        )

    def drop_move_claim(self, context: RequestContext, host: str, *, token: MoveToken, instance_uuid: str) -> None:
        """Ends what a move claimed at a host that it turns away from before there is a guest."""
        self._rpc.call(
            context, "drop_move_claim", result=NOTHING, server=host, token=token, instance_uuid=instance_uuid
        )

    # moves inside a cell

    def prep_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        migration_type: str,
    ) -> MigrationContext:
        """Claims the host for the server with ``instance.new_flavor`` and checks that its volumes can be connected."""
        return self._rpc.call(
            context,
            "prep_resize",
            result=MigrationContext,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            migration_type=migration_type,
        )

    def resize_instance(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        since: int | None = None,
    ) -> SourceOutcome:
        """Powers the guest off, offers its local disks to the target, and takes it off the host but for its disks.

        ``since``: the target has that round; only what changed since is offered. Raises WarmCopyImpossible if
        the host does not know what did.
        """
        more: dict[str, Any] = {"since": since} if since is not None else {}
        return self._rpc.call(
            context,
            "resize_instance",
            result=SourceOutcome,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            **more,
        )

    def finish_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        offer: DiskOffer,
        source_host: str,
        power_on: bool,
    ) -> GuestOutcome:
        """Takes over the ports, connects the volumes, fetches the local disks, and makes the guest from them."""
        return self._rpc.call(
            context,
            "finish_resize",
            result=GuestOutcome,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            offer=offer,
            source_host=source_host,
            power_on=power_on,
        )

    def confirm_resize(self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance) -> None:
        """Deletes the stashed disks and drops what the source still held for the server."""
        self._rpc.call(
            context, "confirm_resize", result=NOTHING, server=host, monitor=True, token=token, instance=instance
        )

    def revert_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        source_host: str,
    ) -> None:
        """Undoes everything that a move made at its target: guest, disks, connections, claim. Also for a failed move."""
        self._rpc.call(
            context,
            "revert_resize",
            result=NOTHING,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            source_host=source_host,
        )

    def finish_revert_resize(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> GuestOutcome:
        """Brings the guest back from its stashed disks, with its ports and volumes. Also for a failed move."""
        return self._rpc.call(
            context,
            "finish_revert_resize",
            result=GuestOutcome,
            server=host,
            monitor=True,
            token=token,
            instance=instance,
            block_devices=block_devices,
            power_on=power_on,
        )

    # audit

    def remove_leftover_claim(
        self, context: RequestContext, host: str, *, instance_uuid: str, migration_uuid: str | None
    ) -> None:
        """Ends a claim that nobody needs."""
        self._rpc.call(
            context,
            "remove_leftover_claim",
            result=NOTHING,
            server=host,
            instance_uuid=instance_uuid,
            migration_uuid=migration_uuid,
        )

    def restore_claim(
        self, context: RequestContext, host: str, *, instance: Instance, migration_uuid: str | None
    ) -> None:
        """Claims what the server's record says that it holds; raises ClaimRefused if others hold it."""
        self._rpc.call(
            context,
            "restore_claim",
            result=NOTHING,
            server=host,
            instance=instance,
            migration_uuid=migration_uuid,
        )

    def list_host(self, context: RequestContext, host: str) -> HostContents:
        """Everything that is on a host."""
        return self._rpc.call(context, "list_host", result=HostContents, server=host)

    def remove_leftover_file(self, context: RequestContext, host: str, *, name: str) -> None:
        """Deletes what a transfer left in the image cache."""
        self._rpc.call(context, "remove_leftover_file", result=NOTHING, server=host, name=name)

    def remove_leftover_disks(self, context: RequestContext, host: str, *, instance_uuid: str, stashed: bool) -> None:
        """Deletes the disks of a server that has no guest there; raises InvalidState if it has one."""
        self._rpc.call(
            context,
            "remove_leftover_disks",
            result=NOTHING,
            server=host,
            instance_uuid=instance_uuid,
            stashed=stashed,
        )
