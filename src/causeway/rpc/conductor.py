"""What others ask of the conductor: the facade of the super conductor, which drives all work on servers.

Casts return when the message is in the queue. What comes of them is seen in the server's states, its actions and faults.
"""

from __future__ import annotations

from typing import Any

from causeway.context import RequestContext
from causeway.model.audit import Report
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import MoveCandidates
from causeway.model.drains import DrainRequest, Plan
from causeway.model.events import HostEvents
from causeway.model.flavor import Flavor
from causeway.model.network import RequestedNetwork, Vif
from causeway.rpc.client import RpcClient
from causeway.rpc.conductor_verbs import ConductorVerbs

TOPIC = "conductor"
VERSION = "1.0"


class ConductorClient(ConductorVerbs):
    """The super conductor, as the API sees it. The request's states, action and records are written before a call."""

    def __init__(self, transport: Any) -> None:
        self._rpc = RpcClient(transport, TOPIC, version=VERSION)

    def start_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "start_instance", instance_uuid=instance_uuid)

    def stop_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._rpc.cast(context, "stop_instance", instance_uuid=instance_uuid)

    def reboot_instance(self, context: RequestContext, *, instance_uuid: str, hard: bool) -> None:
        self._rpc.cast(context, "reboot_instance", instance_uuid=instance_uuid, hard=hard)

    def work_in_hand(self, context: RequestContext, conductor: str) -> list[str]:
        """The servers that one conductor works on at this moment, apart from moves."""
        return self._rpc.call(context, "work_in_hand", result=list[str], server=conductor)

    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        """Starts a move that was written to the journal (`causeway.moves.requests`)."""
        self._rpc.cast(context, "run_move", move_id=move_id)

    def take_over_move(self, context: RequestContext, *, move_id: str) -> None:
        """Tells all conductors of a move that one of them lets go of; whoever is first has it."""
        self._rpc.cast(context, "take_over_move", fanout=True, move_id=move_id)

    def live_migration_abort(self, context: RequestContext, *, instance_uuid: str, migration_uuid: str) -> None:
        """Has the source's hypervisor hear at once that nobody wants a live migration any more."""
        self._rpc.cast(context, "live_migration_abort", instance_uuid=instance_uuid, migration_uuid=migration_uuid)

    def live_migration_force_complete(
        self, context: RequestContext, *, instance_uuid: str, migration_uuid: str
    ) -> None:
        """Has a live migration come to its end now, at the cost of the guest standing still."""
        self._rpc.cast(
            context, "live_migration_force_complete", instance_uuid=instance_uuid, migration_uuid=migration_uuid
        )

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
        """Reserves the volume and gives it to the guest; returns its mapping. Refused or failed: nothing has happened."""
        return self._rpc.call(
            context,
            "add_volume",
            result=BlockDevice,
            instance_uuid=instance_uuid,
            volume_id=volume_id,
            device=device,
            tag=tag,
            delete_on_termination=delete_on_termination,
        )

    def add_port(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        """Makes or takes a port, binds it to the server's host and plugs it. Refused or failed: nothing has happened."""
        return self._rpc.call(context, "add_port", result=Vif, instance_uuid=instance_uuid, requested=requested)

    def get_console_output(self, context: RequestContext, *, instance_uuid: str, length: int | None) -> str:
        """The last ``length`` lines (None: all that is kept) of what the guest wrote to its console."""
        return self._rpc.call(context, "get_console_output", result=str, instance_uuid=instance_uuid, length=length)

    def audit(self, context: RequestContext, *, fix: bool) -> Report:
        """Holds everything that knows of servers against each other; ``fix``: mends what is safe."""
        return self._rpc.call(context, "audit", result=Report, monitor=True, fix=fix)

    def map_server(self, context: RequestContext, *, instance_uuid: str, cell: str, host: str) -> Report:
        """Maps a server to where its only guest and disks are; raises Conflict if they are elsewhere, or work goes on."""
        return self._rpc.call(
            context,
            "map_server",
            result=Report,
            monitor=True,
            instance_uuid=instance_uuid,
            cell=cell,
            host=host,
        )

    def move_candidates(
        self, context: RequestContext, *, instance_uuid: str, flavor: Flavor | None, cross_cell_allowed: bool
    ) -> MoveCandidates:
        """Where a server could go with a flavor (None: its own), and why not elsewhere. Changes nothing."""
        return self._rpc.call(
            context,
            "move_candidates",
            result=MoveCandidates,
            monitor=True,
            instance_uuid=instance_uuid,
            flavor=flavor,
            cross_cell_allowed=cross_cell_allowed,
        )

    def plan_drain(self, context: RequestContext, *, request: DrainRequest) -> Plan:
        """What a drain would do, server by server, and whether it all fits. Changes nothing.

        Raises BadRequest for what can't be asked for.
        """
        return self._rpc.call(context, "plan_drain", result=Plan, monitor=True, request=request)

    def look_at_drains(self, context: RequestContext) -> None:
        """Tells a conductor that something was asked of a drain; they look by themselves, too."""
        self._rpc.cast(context, "look_at_drains")

    def external_events(self, context: RequestContext, *, hosts: list[HostEvents]) -> None:
        """Hands events to the hosts that may wait for them, each through its own cell."""
        self._rpc.cast(context, "external_events", hosts=hosts)
