"""Calls for users' requests to the guest itself, and for caching images ahead of time."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.console import ConsoleAddress, ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.rpc.declare import Client, call


def _can_not_trim(host: str, _method: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        "The host's compute service can't have guests trimmed until it is upgraded.", details=f"host {host}"
    )


class InsideCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14", monitor=True)
    def get_diagnostics(self, context: RequestContext, host: str, *, instance_uuid: str) -> Diagnostics:
        """Returns the hypervisor's counters of the guest. Raises GuestFailed if the guest does not run."""

    @call(since="1.14", monitor=True)
    def trigger_crash_dump(self, context: RequestContext, host: str, *, instance_uuid: str) -> None:
        """Interrupts the guest, whose kernel dumps its memory if it is set up for that."""

    @call(since="1.16", monitor=True, too_old=_can_not_trim)
    def trim_guest(self, context: RequestContext, host: str, *, instance: Instance) -> None:
        """Has the guest's agent return unused blocks of its file systems to the disks.

        Raises GuestFailed if the guest does not run on the host, or if no agent does it in time.
        """

    @call(since="1.14", monitor=True)
    def set_admin_password(self, context: RequestContext, host: str, *, instance: Instance, password: str) -> None:
        """Has the guest's agent set its administrator's password. Raises GuestFailed if it does not."""

    @call(since="1.14", monitor=True)
    def get_console(
        self, context: RequestContext, host: str, *, instance_uuid: str, console_type: ConsoleType
    ) -> ConsoleAddress:
        """Returns the address of the guest's console of a type.

        Raises ConsoleTypeUnavailable, or GuestFailed if the guest does not run.
        """

    @call(since="1.14", monitor=True)
    def cache_images(self, context: RequestContext, host: str, *, image_ids: list[str]) -> dict[str, str]:
        """Fetches images that the host does not have. Returns image -> "cached", "existing" or "error"."""
