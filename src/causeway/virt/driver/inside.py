"""What users ask of the guest itself: its console, its counters, a dump, a password, its clock. All of it is optional."""

from __future__ import annotations

from causeway.errors import ConsoleTypeUnavailable
from causeway.model.console import ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.virt.driver.support import unsupported


class InsideMethods:
    """A part of `causeway.virt.driver.Driver`."""

    def console_output(self, uuid: str) -> bytes:  # noqa: ARG002
        """The end of what the guest wrote to its serial console, as much as the host keeps."""
        raise unsupported("show the console output of guests")

    def console_listener(self, uuid: str, kind: ConsoleType) -> tuple[str, int]:  # noqa: ARG002
        """The address and port, reachable for console proxies, at which a console of the guest listens.

        Raises `ConsoleTypeUnavailable` if the guest has no console of this kind, and `GuestFailed` if it does not run.
        """
        raise ConsoleTypeUnavailable.of(kind.value, "The hypervisor has no such consoles.")

    def diagnostics(self, uuid: str) -> Diagnostics:  # noqa: ARG002
        """The hypervisor's counters of a running guest. Raises `GuestFailed` if it does not run."""
        raise unsupported("give diagnostics of guests")

    def trigger_crash_dump(self, uuid: str) -> None:  # noqa: ARG002
        """Sends the guest a non-maskable interrupt; its kernel then dumps its memory, if it is set up to do so.

        Raises `GuestFailed` if the guest is off.
        """
        raise unsupported("trigger crash dumps")

    def trim_guest(self, instance: Instance) -> None:  # noqa: ARG002
        """Has the agent in the guest return unused blocks of all its file systems to the disks. May take some minutes.

        Raises `GuestFailed` if the guest does not run here, or is being handed over to another host; if there is no agent; if it
        refuses; and if it has not done so after the time that the driver gives it. The guest may continue it then.
        """
        raise unsupported("trim guests")

    def set_password(self, instance: Instance, user: str, password: str) -> None:  # noqa: ARG002
        """Has the agent in the guest set a user's password. Raises `GuestFailed` if there is no agent, or if it refuses."""
        raise unsupported("set passwords in guests")

    def set_clock(self, uuid: str) -> None:
        """Has the agent in the guest set its clock, which is late after the guest stood still. Nothing happens without agent."""
