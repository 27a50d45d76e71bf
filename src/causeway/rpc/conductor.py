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
HISTORY = {"1.0": "states of guests, devices, moves, drains, the audit, cached images"}


class ConductorClient(Client):
    """The super conductor, for the API, which writes the request's states, action and records before a call."""

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
        """The hypervisor's counters of the guest. Raises GuestFailed if it does not run."""

    @cast(since="1.0")
    def trigger_crash_dump(self, context: RequestContext, *, instance_uuid: str) -> None: ...

    @call(since="1.0")
    def set_admin_password(self, context: RequestContext, *, instance_uuid: str, password: str) -> None:
        """Waits until the guest's agent has set the password.

        Raises GuestFailed if it did not. The server's task ends in any case.
        """

    @call(since="1.0")
    def get_console(self, context: RequestContext, *, instance_uuid: str, console_type: ConsoleType) -> ConsolePlace:
        """The present place of the server's console of a type.

        Raises ConsoleTypeUnavailable, or GuestFailed if the guest does not run.
        """

    @call(since="1.0")
    def get_console_output(self, context: RequestContext, *, instance_uuid: str, length: int | None) -> str:
        """The last ``length`` lines (None: everything that is kept) that the guest wrote to its console."""

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
        """Reserves the volume and attaches it to the guest. Returns its mapping. If it raises, nothing has changed."""

    @call(since="1.0")
    def add_port(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        """Makes a port or uses a given one, binds it to the server's host and attaches it. If it raises, nothing has changed."""

    @cast(since="1.0")
    def external_events(self, context: RequestContext, *, hosts: list[HostEvents]) -> None:
        """Passes events to the hosts that may wait for them, each through its own cell."""

    # moves

    @cast(since="1.0")
    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        """Starts a move that was written to the journal (`causeway.moves.requests`)."""

    @cast(since="1.0", fanout=True)
    def take_over_move(self, context: RequestContext, *, move_id: str) -> None:
        """Notifies all conductors of a move that one of them releases; the first one acquires it."""

    @cast(since="1.0")
    def live_migration_abort(self, context: RequestContext, *, instance_uuid: str, migration_uuid: str) -> None:
        """Informs the source's hypervisor at once that a live migration was cancelled."""

    @cast(since="1.0")
    def live_migration_force_complete(
        self, context: RequestContext, *, instance_uuid: str, migration_uuid: str
    ) -> None:
        """Forces a live migration to complete now, while the guest stands still."""

    @call(since="1.0", monitor=True)
    def move_candidates(
        self, context: RequestContext, *, instance_uuid: str, flavor: Flavor | None, cross_cell_allowed: bool
    ) -> MoveCandidates:
        """Where a server could go with a flavor (None: its own), and why not elsewhere. Changes nothing."""

    @call(since="1.0")
    def work_in_hand(self, context: RequestContext, host: str) -> list[str]:
        """The servers that the conductor of a host works on now, apart from moves."""

    # the cloud

    @call(since="1.0", monitor=True)
    def plan_drain(self, context: RequestContext, *, request: DrainRequest) -> Plan:
        """Plans a drain, server by server, and whether everything fits.

        Changes nothing. Raises BadRequest for an invalid request.
        """

    @cast(since="1.0")
    def look_at_drains(self, context: RequestContext) -> None:
        """Notifies a conductor of a request about a drain. Conductors also look by themselves."""

    @call(since="1.0", monitor=True)
    def audit(self, context: RequestContext, *, fix: bool) -> Report:
        """Compares everything that has records of servers. ``fix``: fixes what is safe to fix."""

    @call(since="1.0", monitor=True)
    def map_server(self, context: RequestContext, *, instance_uuid: str, cell: str, host: str) -> Report:
        """Maps a server to where its only guest and disks are.

        Raises Conflict if they are elsewhere, or an operation is running.
        """

    @cast(since="1.0")
    def cache_images(self, context: RequestContext, *, aggregate_id: int, image_ids: list[str]) -> None: ...

    @cast(since="1.0")
    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:
        """Deletes evacuated servers' guests and disks from a host that came back."""
