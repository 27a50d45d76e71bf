"""Evacuates servers from hosts that are down: makes the guest anew on another host of the cell.

The migration (type ``evacuation``) holds the allocations of the server at its dead host, as in a move. While it is under way
its status is ``accepted``. ``done`` means that the server is at its new host, and the old one may still have its guest and
disks. When that host reports again they are deleted, and the migration is ``completed``
(`causeway.conductor.upkeep.evacuated`).
"""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass, field
from typing import TypeAlias

from causeway import errors
from causeway.context import RequestContext
from causeway.devices import late
from causeway.model import operations
from causeway.model.instance import Instance, MigrationContext
from causeway.model.migration import EVACUATION, Migration
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import MigrationStatus, PowerState, TaskState, VmState
from causeway.model.things import Thing
from causeway.moves.without_guest import next_host
from causeway.moves.without_guest.new_home import NewHome, at_new_home, new_home_of
from causeway.moves.without_guest.next_host import FailedHosts
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.scheduler.request import MoveClaim
from causeway.servers import endings, guests
from causeway.store.api import migrations
from causeway.store.cell import instances

TASKS = {TaskState.REBUILDING}


@dataclass
class EvacuateMemory:
    """``source_node``: uuid of the dead host's compute node. ``wanted_host``: the requested one; ``forced``: skips all filters.

    ``source_storage``: where the dead host keeps disks that other hosts may reach. ``power_on``: whether the server runs
    afterwards. ``place``: once it was chosen. ``failed_hosts``: tried before.
    """

    source_host: str
    source_node: str
    power_on: bool
    old_vm_state: VmState
    source_storage: Given[str | None] = None
    wanted_host: Given[str | None] = None
    forced: Given[bool] = False
    place: NewHome | None = None
    guest: GuestOutcome | None = None
    failed_hosts: Given[FailedHosts] = field(default_factory=dict)


Run: TypeAlias = OperationRun[EvacuateMemory]


def migration_of(context: RequestContext, instance: Instance, cell_uuid: str, source_node: str | None) -> Migration:
    """The migration record of an evacuation, visible from its acceptance on.

    ``source_node``: the name of the dead host's node.
    """
    return Migration(
        uuid=str(uuids.uuid4()),
        user_id=context.user_id,
        project_id=context.project_id,
        instance_uuid=instance.uuid,
        migration_type=EVACUATION,
        status=MigrationStatus.ACCEPTED,
        source_compute=instance.host or "",
        source_node=source_node,
        source_cell=cell_uuid,
        dest_cell=cell_uuid,
    )


def _there(run: Run) -> Instance:
    """The server as it will be on its new host."""
    return at_new_home(run.instance(), run.memory.place)


class SelectHost(Step[Run]):
    """Chooses and claims another host of the cell. From then on, events of the network service go there too."""

    name = "SelectHost"
    reads = frozenset({"failed_hosts", "forced", "source_host", "source_node", "source_storage", "wanted_host"})
    writes = frozenset({"place"})
    makes = frozenset({Thing.ALLOCATION})

    def do(self, run: Run) -> None:
        services, memory, migration = run.services, run.memory, run.saga.migration_uuid
        if run.instance().host != memory.source_host:
            raise errors.InvalidState(f"Server {run.uuid} was evacuated already.")
        if run.is_repeated:
            # Releases the claim of a call whose answer was lost: it would prevent the same choice.
            self.undo(run)
        with run.event("rebuild_server"):
            claim = MoveClaim(migration, memory.source_node)
            storage = memory.source_storage
            chosen = next_host.choose(run, run.instance(), forced=memory.forced, move=claim, storage=storage)
        memory.place = new_home_of(chosen.instance)
        context = MigrationContext(migration, dest_host=chosen.selection.host, dest_cell=run.cell.uuid)
        instances.update(run.database, run.uuid, migration_context=context)
        migrations.update(
            services.api,
            migration,
            dest_compute=chosen.selection.host,
            dest_node=chosen.selection.hypervisor_hostname,
            dest_host=chosen.selection.host_ip,
        )
        services.notifier.instance_action(
            run.context, run.instance(), "evacuate", None, host=services.host, source="nova-api"
        )

    def undo(self, run: Run) -> None:
        run.services.placement.return_allocations(
            run.uuid, run.saga.migration_uuid, source_provider=run.memory.source_node
        )


class RebuildGuest(Step[Run]):
    """Has the new host make the guest; its volumes are detached from the dead host."""

    name = "RebuildGuest"
    reads = frozenset({"place", "power_on", "source_host", "source_storage"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.ATTACHMENT, Thing.DISKS, Thing.GUEST})

    def where(self, run: Run) -> str | None:
        return run.memory.place.host if run.memory.place is not None else None

    def do(self, run: Run) -> None:
        there, present = _there(run), run.devices()
        host = there.host or ""
        if not run.is_repeated:
            run.services.notifier.instance_action(
                run.context, there, "rebuild", "start", host=host, block_devices=present
            )
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            # Deletes the attachments of the dead host. Those that an earlier attempt reserved are for the new guest.
            guests.keep_volumes_reserved(run)
            run.memory.guest = guests.make_anew(
                run,
                self.name,
                there,
                present,
                snapshot_id=None,
                power_on=run.memory.power_on,
                dead_host=run.memory.source_host if run.memory.source_storage is not None else None,
            )

    def undo(self, run: Run) -> None:
        there = _there(run)
        guests.remove(run, self.name, there.host or "", there, run.devices())
        guests.keep_volumes_reserved(run, in_doubt=True)
        guests.set_volumes_in_use(run)
        guests.bind_ports_back(run, there.host or "", run.memory.source_host)


class EndEvacuation(Step[Run]):
    """Records where the server is now. If the server is being deleted, that happens there."""

    name = "EndEvacuation"
    reads = frozenset({"guest", "place", "source_storage"})

    def do(self, run: Run) -> None:
        guest, there = run.memory.guest, _there(run)
        if guest is None:
            raise RuntimeError("the guest was not rebuilt")
        run.pivot()
        self._keep_disks(run, there)
        becomes = VmState.ACTIVE if guest.power_state is PowerState.RUNNING else VmState.STOPPED
        ended = endings.came_up(run, TASKS, guest, there, beside_devices=True, vm_state=becomes, migration_context=None)
        self._end_migration(run)
        if ended:
            run.services.notifier.instance_action(
                run.context, there, "rebuild", "end", host=there.host or "", block_devices=guest.block_devices
            )

    def _keep_disks(self, run: Run, there: Instance) -> None:
        """Makes disks in shared storage the new host's for good: until now it would return them to the dead host."""
        host = there.host or ""
        if run.memory.source_storage is not None and not guests.is_dead(run, host):
            run.computes.keep_disks(run.context, host, token=run.token(self.name), instance=there)

    def _end_migration(self, run: Run) -> None:
        api, migration = run.services.api, run.saga.migration_uuid
        if run.is_repeated and migrations.get(api, migration).status is MigrationStatus.COMPLETED:
            # The host is up again, and was cleaned already.
            return
        migrations.update(api, migration, status=MigrationStatus.DONE)


def _to_next_host(run: Run, cause: errors.CausewayError) -> bool:
    if not next_host.is_left(run, cause):
        return False
    next_host.try_it(run, EVACUATE.version, EVACUATE.memory_version, cause)
    return True


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Leaves the server at its dead host. Sets it to ERROR, with the reason, if another host failed to make its guest."""
    memory, services = run.memory, run.services
    was_cancelled = isinstance(cause, errors.Cancelled)
    status = MigrationStatus.CANCELLED if was_cancelled else MigrationStatus.ERROR
    migrations.update(services.api, run.saga.migration_uuid, status=status)
    # A cancelled evacuation has no reason to report, and leaves nothing.
    none_was_tried = memory.place is None and not memory.failed_hosts
    becomes = memory.old_vm_state if was_cancelled or none_was_tried else VmState.ERROR
    endings.failed(run, cause, TASKS, vm_state=becomes, migration_context=None)
    services.notifier.compute_task_error(
        run.context, "rebuild_server", instance_uuid=run.uuid, state=becomes, error=cause
    )


def _undo_late(run: Run) -> None:
    late.require_ended(run)
    memory, server = run.memory, late.server_now(run)
    late.delete_attachments(run, server)
    late.return_claim(run, server, memory.source_host, memory.source_node, from_dead_host=True)


EVACUATE = Recipe(
    operations.EVACUATE,
    (SelectHost(), RebuildGuest(), EndEvacuation()),
    pivot="EndEvacuation",
    rolled_back=_rolled_back,
    try_again=_to_next_host,
    undo_late=_undo_late,
    memory=EvacuateMemory,
)
