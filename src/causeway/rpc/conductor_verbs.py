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

    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:
        """Removes from a host that came back what was evacuated from it."""
        self._rpc.cast(context, "clean_evacuated", host=host)
