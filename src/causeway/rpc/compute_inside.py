"""What a conductor asks of computes for users who want something of the guest itself."""

from __future__ import annotations

from typing import TypeVar

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.console import ConsoleAddress, ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.rpc.client import RpcClient

T = TypeVar("T")


class ComputeInside:
    """A part of `causeway.rpc.compute.ComputeClient`. All of it raises NotImplementedHere if the host can't do it."""

    _rpc: RpcClient

    def get_diagnostics(self, context: RequestContext, host: str, *, instance_uuid: str) -> Diagnostics:
        """Raises GuestFailed if the guest does not run."""
        return self._ask(context, host, "get_diagnostics", Diagnostics, instance_uuid=instance_uuid)

    def trigger_crash_dump(self, context: RequestContext, host: str, *, instance_uuid: str) -> None:
        """Interrupts the guest, whose kernel dumps its memory if it is set up for that."""
        self._ask(context, host, "trigger_crash_dump", type(None), instance_uuid=instance_uuid)

    def set_admin_password(self, context: RequestContext, host: str, *, instance: Instance, password: str) -> None:
        """Has the guest's agent set its administrator's password. Raises GuestFailed if it does not."""
        self._ask(context, host, "set_admin_password", type(None), instance=instance, password=password)

    def get_console(
        self, context: RequestContext, host: str, *, instance_uuid: str, console_type: ConsoleType
    ) -> ConsoleAddress:
        """Where such a console of the guest is. Raises ConsoleTypeUnavailable, or GuestFailed if the guest does not run."""
        return self._ask(
            context,
            host,
            "get_console",
            ConsoleAddress,
            versions.CONSOLES_RPC,
            instance_uuid=instance_uuid,
            console_type=console_type,
        )

    def cache_images(self, context: RequestContext, host: str, *, image_ids: list[str]) -> dict[str, str]:
        """Fetches images that the host has not; image -> "cached", "existing" or "error"."""
        return self._ask(context, host, "cache_images", dict[str, str], versions.VOLUME_JOBS_RPC, image_ids=image_ids)

    def _ask(
        self,
        context: RequestContext,
        host: str,
        method: str,
        result: type[T],
        version: str = versions.INSIDE_GUESTS_RPC,
        **arguments: object,
    ) -> T:
        too_old = errors.NotImplementedHere(
            f"Host {host} can't do that yet ({method}): its compute service is of an earlier release, or held to one."
        )
        return self._rpc.order_if_known(
            context,
            method,
            version=version,
            too_old=too_old,
            result=result,
            server=host,
            **arguments,
        )
