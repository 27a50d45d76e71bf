"""What the API asks of the super conductor apart from builds, power, devices and moves. All of them are casts."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.rpc.client import RpcClient


class ConductorVerbs:
    """A part of `causeway.rpc.conductor.ConductorClient`. The request's states and action are written before a call."""

    _rpc: RpcClient

    def pause_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "pause_instance", instance_uuid=instance_uuid)

    def unpause_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "unpause_instance", instance_uuid=instance_uuid)

    def suspend_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "suspend_instance", instance_uuid=instance_uuid)

    def resume_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "resume_instance", instance_uuid=instance_uuid)

    def snapshot_instance(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        image_id: str,
        rotation: int | None,
        backup_type: str | None,
    ) -> None:
        """Fills an image that was made for it. With ``rotation``: of a backup's images so many are kept."""
        self._rpc.cast(
            context,
            "snapshot_instance",
            instance_uuid=instance_uuid,
            image_id=image_id,
            rotation=rotation,
            backup_type=backup_type,
        )

    def rebuild_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Makes the guest anew on its host, from what the server's record says now."""
        self._rpc.cast(context, "rebuild_instance", instance_uuid=instance_uuid)

    def evacuate_instance(
        self, context: RequestContext, *, instance_uuid: str, host: str | None, forced: bool, power_on: bool
    ) -> None:
        """Makes the guest anew on another host of its cell: its own is down. ``forced``: past all filters."""
        self._rpc.cast(
            context, "evacuate_instance", instance_uuid=instance_uuid, host=host, forced=forced, power_on=power_on
        )

    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:
        """Removes from a host that came back what was evacuated from it."""
        self._rpc.cast(context, "clean_evacuated", host=host)

    def shelve_instance(self, context: RequestContext, *, instance_uuid: str, image_id: str | None) -> None:
        """Takes the guest down, its root disk into an image (if it is not a volume)."""
        self._rpc.cast(context, "shelve_instance", instance_uuid=instance_uuid, image_id=image_id)

    def shelve_offload_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Removes a shelved server from its host."""
        self._rpc.cast(context, "shelve_offload_instance", instance_uuid=instance_uuid)

    def unshelve_instance(self, context: RequestContext, *, instance_uuid: str, host: str | None) -> None:
        self._rpc.cast(context, "unshelve_instance", instance_uuid=instance_uuid, host=host)
