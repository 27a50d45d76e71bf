"""What the API asks of the super conductor apart from builds, power, devices and moves. What returns nothing is mostly a cast."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.console import ConsolePlace, ConsoleType
from causeway.model.diagnostics import Diagnostics
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

    def get_diagnostics(self, context: RequestContext, *, instance_uuid: str) -> Diagnostics:
        """What the hypervisor counts of the guest. Raises GuestFailed if it does not run."""
        return self._rpc.call(context, "get_diagnostics", result=Diagnostics, instance_uuid=instance_uuid)

    def trigger_crash_dump(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "trigger_crash_dump", instance_uuid=instance_uuid)

    def set_admin_password(self, context: RequestContext, *, instance_uuid: str, password: str) -> None:
        """Waits until the guest's agent has set it. Raises GuestFailed if it did not; the server's task is over either way."""
        self._rpc.call(context, "set_admin_password", result=type(None), instance_uuid=instance_uuid, password=password)

    def get_console(self, context: RequestContext, *, instance_uuid: str, console_type: ConsoleType) -> ConsolePlace:
        """Where such a console of the server is now. Raises ConsoleTypeUnavailable, or GuestFailed if the guest does not run."""
        return self._rpc.call(
            context, "get_console", result=ConsolePlace, instance_uuid=instance_uuid, console_type=console_type
        )

    def cache_images(self, context: RequestContext, *, aggregate_id: int, image_ids: list[str]) -> None:
        self._rpc.cast(context, "cache_images", aggregate_id=aggregate_id, image_ids=image_ids)

    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:
        """Removes from a host that came back what was evacuated from it."""
        self._rpc.cast(context, "clean_evacuated", host=host)
