"""Calls to the super conductor, which drives all work on servers.

Casts return when the message is in the queue. Their outcome is in the server's states, actions and faults.
"""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.audit import Report
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import MoveCandidates
from causeway.model.console import ConsolePlace, ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.drains import DrainRequest, Plan
from causeway.model.events import HostEvents
from causeway.model.flavor import Flavor
from causeway.model.network import RequestedNetwork, Vif
from causeway.rpc.declare import Client, call, cast

TOPIC = "conductor"
HISTORY = {
    "1.0": "states of guests, devices, moves, drains, the audit, cached images",
    "1.1": "trims of guests",
}
VERSION = next(reversed(HISTORY))


class ConductorClient(Client):
    """Calls of the API to the super conductor. Before a call, the API writes the request's states, action and records."""

    topic, history = TOPIC, HISTORY

    # guests

    @cast(since="1.0")
    def start_instance(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @cast(since="1.0")
    def stop_instance(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @cast(since="1.0")
    def reboot_instance(self, context: RequestContext, *, instance_uuid: str, hard: bool) -> None: ...

    @cast(since="1.0")
    def pause_instance(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @cast(since="1.0")
    def unpause_instance(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @cast(since="1.0")
    def suspend_instance(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @cast(since="1.0")
    def resume_instance(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    # inside guests

    @call(since="1.0")
    def get_diagnostics(self, context: RequestContext, *, instance_uuid: str) -> Diagnostics:
        """Returns the hypervisor's counters of the guest. Raises GuestFailed if the guest does not run."""

    @cast(since="1.0")
    def trigger_crash_dump(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @cast(since="1.1")
    def trim_guest(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @call(since="1.0")
    def set_admin_password(self, context: RequestContext, *, instance_uuid: str, password: str) -> None:
        """Sets the password through the guest's agent, and waits until that is done.

        Raises GuestFailed if the agent did not set it. The server's task ends in any case.
        """

    @call(since="1.0")
    def get_console(self, context: RequestContext, *, instance_uuid: str, console_type: ConsoleType) -> ConsolePlace:
        """Returns where the server's console of a type is now.

        Raises ConsoleTypeUnavailable, or GuestFailed if the guest does not run.
        """

    @call(since="1.0")
    def get_console_output(self, context: RequestContext, *, instance_uuid: str, length: int | None) -> str:
        """Returns the last ``length`` lines that the guest wrote to its console; None: all that the hypervisor has."""

    # devices

    @call(since="1.0")
    def add_volume(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        volume_id: str,
        device: str | None,
        tag: str | None,
        delete_on_termination: bool,
    ) -> BlockDevice:
        """Reserves the volume and attaches it to the guest. Returns its mapping. If this raises, nothing has changed."""

    @call(since="1.0")
    def add_port(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        """Makes a port or uses a given one, binds it to the server's host and attaches it. If this raises, nothing changed."""

    @cast(since="1.0")
    def external_events(self, context: RequestContext, *, hosts: list[HostEvents]) -> None:
        """Passes events to the hosts that may wait for them, each through its own cell."""

    # operations

    @cast(since="1.0")
    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        """Starts an operation that was written to the journal. Of 0.1.0, as all names here that say move."""

    @cast(since="1.0", fanout=True)
    def take_over_move(self, context: RequestContext, *, move_id: str) -> None:
        """Notifies all conductors that one of them has released an operation. The first of the others acquires it."""

    @cast(since="1.0")
    def live_migration_abort(self, context: RequestContext, *, instance_uuid: str, migration_uuid: str) -> None:
        """Informs the source's hypervisor at once that a live migration was cancelled."""

    @cast(since="1.0")
    def live_migration_force_complete(
        self, context: RequestContext, *, instance_uuid: str, migration_uuid: str
    ) -> None:
        """Forces a live migration to complete now: the guest stands still until the transfer is complete."""

    @call(since="1.0", monitor=True)
    def move_candidates(
        self, context: RequestContext, *, instance_uuid: str, flavor: Flavor | None, cross_cell_allowed: bool
    ) -> MoveCandidates:
        """Returns where a server could go with a flavor (None: its own), and why not to other hosts. Changes nothing."""

    @call(since="1.0")
    def work_in_hand(self, context: RequestContext, host: str) -> list[str]:
        """Returns the servers that the conductor on ``host`` works on now, apart from moves."""

    # the cloud

    @call(since="1.0", monitor=True)
    def plan_drain(self, context: RequestContext, *, request: DrainRequest) -> Plan:
        """Plans a drain, server by server, and whether everything fits.

        Changes nothing. Raises BadRequest for an invalid request.
        """

    @cast(since="1.0")
    def look_at_drains(self, context: RequestContext) -> None:
        """Has a conductor look now at the requests about drains. Without this call, conductors look from time to time."""

    @call(since="1.0", monitor=True)
    def audit(self, context: RequestContext, *, fix: bool) -> Report:
        """Compares everything that has records of servers. Returns the findings. ``fix``: fixes those that are safe to fix."""

    @call(since="1.0", monitor=True)
    def map_server(self, context: RequestContext, *, instance_uuid: str, cell: str, host: str) -> Report:
        """Maps a server to the cell and host where its only guest and disks are.

        Raises Conflict if they are somewhere else, or if an operation of the server is running.
        """

    @cast(since="1.0")
    def cache_images(self, context: RequestContext, *, aggregate_id: int, image_ids: list[str]) -> None: ...

    @cast(since="1.0")
    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:
        """Deletes evacuated servers' guests and disks from a host that is up again."""
