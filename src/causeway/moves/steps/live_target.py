"""The steps of a live migration that find a target which accepts the guest. The guest notices nothing."""

from __future__ import annotations

import dataclasses
import logging

from causeway import errors
from causeway.clients.network_bindings import PortBinding
from causeway.devices.port_devices import at_host
from causeway.hosts import groups
from causeway.model.instance import MigrationContext
from causeway.model.network import Vif
from causeway.model.things import Thing
from causeway.moves import events, hardware, placing, reach
from causeway.moves.move_run import Run
from causeway.moves.port_resources import note_target_plug
from causeway.moves.recipe import Step
from causeway.moves.sides import life_of, source_of, target_of
from causeway.moves.steps.prepare import ReserveHost
from causeway.rpc.compute.live_calls import LiveCheck
from causeway.scheduler.request import MoveClaim, RequestSpec
from causeway.store.api import mappings, migrations
from causeway.store.cell import hosts, instances
from causeway.virt.live_guest import LiveSource

LOG = logging.getLogger(__name__)

# Errors of the chosen host after which another host may succeed.
_OF_THE_HOST = (
    errors.ClaimRefused,
    errors.GuestFailed,
    errors.RpcTimeout,
    errors.UnexpectedFailure,
)


class ChooseTarget(Step):
    """Inside a cell: claims a host and asks it. Releases a host that refuses, and tries the next one."""

    name = "ChooseTarget"
    reads = frozenset(
        {
            "block_migration",
            "disk_over_commit",
            "event",
            "forced",
            "hosts_without_network",
            "new_flavor",
            "requested_host",
            "source_cell",
            "source_host",
            "source_node",
            "source_storage",
        }
    )
    writes = frozenset({"bound_hosts", "connector", "group", "live_source", "port_requests", "selection"})
    makes = frozenset({Thing.ALLOCATION, Thing.CLAIM})

    def do(self, run: Run) -> None:
        memory = run.memory
        if run.source_instance().host != memory.source_host:
            raise errors.InvalidState(f"Server {run.uuid} has left host {memory.source_host}.")
        with run.event(memory.event):
            self._require_source(run)
            hardware.refuse_devices_that_stay(run)
            memory.group = RequestSpec.from_persisted(mappings.get_spec(run.services.api, run.uuid)).server_group
            memory.live_source = ask_source(run)
            memory.live_source.disk_over_commit = memory.disk_over_commit
            context = self._agree(run, memory.live_source)
        context.source_host, context.source_cell = memory.source_host, memory.source_cell
        context.dest_cell = memory.target_cell
        hardware.add_old(context, run.source_instance())
        instances.update(run.source_database, run.uuid, migration_context=context)

    def _require_source(self, run: Run) -> None:
        life = life_of(run, source_of(run))
        if not life.is_up:
            raise errors.OperationFailed(
                "Compute service of the server's host is unavailable.", details=life.explained()
            )

    def _agree(self, run: Run, source: LiveSource) -> MigrationContext:
        """Asks one host after the other until one accepts."""
        memory = run.memory
        if memory.selection is None and run.is_repeated:
            # Releases the claim of a call whose answer was lost: it would prevent the same choice.
            self._return_allocations(run)
        while True:
            if memory.selection is None:
                self._choose(run)
            host = memory.target_host
            try:
                with run.event("compute_check_can_live_migrate_destination", host):
                    groups.claim_host(run.services, memory.group, run.uuid, host)
                    checked = self._ask(run, source)
            except _OF_THE_HOST as refusal:
                if isinstance(refusal, errors.RpcTimeout) and not run.is_repeated:
                    # If only the answer was lost, the host still has the claim.
                    raise
                self._turn_away(run, refusal)
                continue
            memory.connector = checked.connector
            return checked.context

    def _choose(self, run: Run) -> None:
        memory, migration = run.memory, run.move.migration_uuid
        chosen = placing.choose(
            run.services,
            run.context,
            run.source_instance(),
            memory.source_cell,
            order=run.order,
            host=memory.requested_host,
            forced=memory.forced,
            move=MoveClaim(migration, memory.source_node),
            ignore=[*memory.hosts_without_network, *memory.bound_hosts],
            storage=memory.source_storage,
        )
        selection = chosen.selection
        memory.selection, memory.port_requests = selection, chosen.asked
        source_node = next(iter(hosts.list_nodes(run.source_database, host=memory.source_host)), None)
        run.save(
            also=lambda connection: migrations.update_in(
                connection,
                migration,
                source_node=source_node.hypervisor_hostname if source_node is not None else None,
                dest_compute=selection.host,
                dest_node=selection.hypervisor_hostname,
            )
        )

    def _ask(self, run: Run, source: LiveSource) -> LiveCheck:
        life = life_of(run, target_of(run))
        if not life.is_up:
            raise errors.ClaimRefused("The chosen host is down.", details=life.explained())
        return ask_target(run, run.memory.target_host, self.name, source)

    def _turn_away(self, run: Run, refusal: errors.CausewayError) -> None:
        """Releases the chosen host, which refused. Raises NoValidHost if no other host may be tried."""
        memory, retries = run.memory, run.unguarded.conf.conductor.migrate_max_retries
        host = memory.target_host
        LOG.info("Live migration %s: host %s refused: %s %s", run.move.id, host, refusal.message, refusal.details)
        hardware.release_claim_if_there(run, host, self.name)
        memory.bound_hosts.append(host)
        memory.selection = None
        run.save()
        groups.release(run.services, memory.group, run.uuid)
        self._return_allocations(run)
        run.refresh()
        # As in Nova, the first host does not count.
        is_last = memory.requested_host is not None or 0 <= retries < len(memory.bound_hosts)
        if is_last:
            raise errors.NoValidHost(
                f"No valid host was found. {refusal.message}", details=refusal.details
            ) from refusal

    def _return_allocations(self, run: Run) -> None:
        run.services.placement.return_allocations(
            run.uuid, run.move.migration_uuid, source_provider=run.memory.source_node
        )

    def undo(self, run: Run) -> None:
        memory = run.memory
        self._return_allocations(run)
        if memory.selection is not None:
            hardware.release_claim(run, memory.target_host, self.name)
        groups.release(run.services, memory.group, run.uuid)
        instances.update(run.source_database, run.uuid, migration_context=None)


class ReserveOtherHost(ReserveHost):
    """In another cell: makes inactive port bindings, and has the target check and claim.

    Volumes follow in `PrepareTarget`: they must not be connected to a target that may still be replaced by an alternate.
    """

    name = "PrepareOtherHost"
    reads = ReserveHost.reads | {"block_migration"}
    writes = ReserveHost.writes | {"connector", "live_source", "target_plugs"}
    event = events.CHECK_TARGET_LIVE

    def do(self, run: Run) -> None:
        run.memory.live_source = ask_source(run)
        super().do(run)

    def _ask(self, run: Run, host: str) -> MigrationContext:
        memory = run.memory
        if memory.live_source is None:
            raise RuntimeError("the source was not asked")
        if memory.bound_hosts:
            self._require_reached(run, host)
        checked = ask_target(run, host, self.name, memory.live_source)
        memory.connector = checked.connector
        return checked.context

    def _note_binding(self, run: Run, vif: Vif, binding: PortBinding) -> None:
        note_target_plug(run.memory, vif.id, binding)

    def _require_reached(self, run: Run, host: str) -> None:
        """Raises an error if the source can't reach an alternate host. `SelectOtherCell` has checked only the first choice."""
        why = reach.why_move_near_live(run, host)
        if why is not None:
            raise errors.HostUnreachable(why.message, details=why.details)


def ask_source(run: Run) -> LiveSource:
    """Has the source check that the guest can leave. Returns what the target must know of it."""
    memory = run.memory
    with run.event("compute_check_can_live_migrate_source", memory.source_host):
        return run.source_computes.check_can_live_migrate_source(
            run.context,
            memory.source_host,
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            block_migration=memory.block_migration,
        )


def ask_target(run: Run, host: str, step: str, source: LiveSource) -> LiveCheck:
    """Has a host check that it can take the guest, and claim what the guest needs."""
    hardware.require_attaching(run, host)
    asking = hardware.asking(run.services.conf, run.source_instance(), run.memory.new_flavor)
    mappings = run.memory.destination.allocation_request.mappings
    requests = at_host(run.services, asking.pci_requests, run.memory.port_requests, mappings)
    return run.target_computes.check_can_live_migrate_destination(
        run.context,
        host,
        token=run.token(step),
        instance=dataclasses.replace(asking, pci_requests=requests),
        block_devices=run.source_devices(),
        source=source,
    )
