"""Calls for users' requests to the guest itself, and for caching images ahead of time."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.console import ConsoleAddress, ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.rpc.declare import Client, call


def _not_supported(host: str, method: str) -> errors.NotImplementedHere:
    return errors.NotImplementedHere(
        f"Host {host} can't do this yet ({method}): its compute service is of an earlier release, or an upgrade level holds it to"
        " one. Ask your cloud's administrator."
    )


class InsideCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`. All calls raise NotImplementedHere if the host can't do them."""

    @call(since="1.9", monitor=True, too_old=_not_supported)
    def get_diagnostics(self, context: RequestContext, host: str, *, instance_uuid: str) -> Diagnostics:
        """Returns the hypervisor's counters of the guest. Raises GuestFailed if the guest does not run."""

    @call(since="1.9", monitor=True, too_old=_not_supported)
    def trigger_crash_dump(self, context: RequestContext, host: str, *, instance_uuid: str) -> None:
        """Interrupts the guest, whose kernel dumps its memory if it is set up for that."""

    @call(since="1.9", monitor=True, too_old=_not_supported)
    def set_admin_password(self, context: RequestContext, host: str, *, instance: Instance, password: str) -> None:
        """Has the guest's agent set its administrator's password. Raises GuestFailed if it does not."""

    @call(since="1.11", monitor=True, too_old=_not_supported)
    def get_console(
        self, context: RequestContext, host: str, *, instance_uuid: str, console_type: ConsoleType
    ) -> ConsoleAddress:
        """Returns the address of the guest's console of a type.

        Raises ConsoleTypeUnavailable, or GuestFailed if the guest does not run.
        """

    @call(since="1.14", monitor=True, too_old=_not_supported)
    def cache_images(self, context: RequestContext, host: str, *, image_ids: list[str]) -> dict[str, str]:
        """Fetches images that the host does not have. Returns image -> "cached", "existing" or "error"."""
