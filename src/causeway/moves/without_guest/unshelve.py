"""Unshelves servers where they are, or on another host of their cell. They run afterwards, even if they were off before.

If they go to another cell, their records move first: `causeway.moves.without_guest.unshelve_across_cells`.
"""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from causeway import errors
from causeway.model import operations
from causeway.model.block_device import is_volume_backed
from causeway.model.instance import Instance
from causeway.model.shelved import HOST, IMAGE, SINCE, WAS_OFF
from causeway.model.states import SHELVED, TaskState, VmState
from causeway.model.things import Thing
from causeway.moves.without_guest import next_host
from causeway.moves.without_guest.new_home import at_new_home, new_home_of
from causeway.moves.without_guest.unshelve_memory import (
    UNSHELVE_ACROSS_CELLS_VERSION,
    UNSHELVE_VERSION,
    UnshelveAcrossCellsMemory,
    UnshelveMemory,
)
from causeway.running.followers import follower_of
from causeway.running.operation_run import OperationRun
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.servers.undo_late import undo_claim
from causeway.store.api import journal
from causeway.store.cell import instances

TASKS = {TaskState.UNSHELVING}


Run: TypeAlias = OperationRun[UnshelveMemory]


def _is_unshelved(run: Run) -> bool:
    """Whether another operation has unshelved the server already: its claim and its guest are not for this one to remove."""
    try:
        server = run.instance()
    except errors.ServerNotFound:
        return False
    # An administrator may have set another state; a server that was offloaded from its dead host was not shelved before.
    return server.vm_state not in SHELVED and SINCE not in server.system_metadata


def _require_shelved(run: Run) -> None:
    if _is_unshelved(run):
        raise errors.StateChanged(f"Server {run.uuid} is not shelved any more: another operation has unshelved it.")


def _there(run: Run) -> Instance:
    """The server as it will be on its new host."""
    return at_new_home(run.instance(), run.memory.place)


class SelectHost(Step[Run]):
    """Chooses and claims a host of the cell for a server without one. From then on, events of the network service go there."""

    name = "SelectHost"
    reads = frozenset({"failed_hosts", "offloaded", "wanted_host"})
    writes = frozenset({"place"})
    makes = frozenset({Thing.ALLOCATION})

    def do(self, run: Run) -> None:
        if not run.memory.offloaded:
            return
        _require_shelved(run)
        services = run.services
        if run.memory.place is not None:
            # The operation that moved the records here has claimed it.
            instances.update(run.database, run.uuid, host=run.memory.place.host, node=run.memory.place.node)
            return
        instance = dataclasses.replace(run.instance(), host=None, node=None)
        if run.is_repeated:
            # An earlier attempt may have claimed another host.
            services.placement.delete_allocations(run.uuid)
        with run.event("conductor_unshelve_instance"):
            chosen = next_host.choose(run, instance).instance
        run.memory.place = new_home_of(chosen)
        instances.update(run.database, run.uuid, host=chosen.host, node=chosen.node)

    def undo(self, run: Run) -> None:
        if run.memory.offloaded and not _is_unshelved(run):
            run.services.placement.delete_allocations(run.uuid)


class StartGuest(Step[Run]):
    """Starts the guest where it is, or makes it anew from the image."""

    name = "StartGuest"
    reads = frozenset({"image_id", "offloaded", "place", "power_on"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.DISKS, Thing.GUEST})

    def where(self, run: Run) -> str | None:
        return run.memory.place.host if run.memory.place is not None else run.instance().host

    def do(self, run: Run) -> None:
        _require_shelved(run)
        there, present = _there(run), run.devices()
        host, image_id = there.host or "", run.memory.image_id
        if not run.is_repeated:
            run.services.notifier.instance_action(run.context, there, "unshelve", "start", host=host)
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            if not run.memory.offloaded:
                run.memory.guest = run.computes.start_guest(
                    run.context, host, token=run.token(self.name), instance=there, block_devices=present
                )
                return
            if image_id is None and not is_volume_backed(present):
                raise errors.ImageNotFound(f"The image of shelved server {run.uuid} is not known.")
            run.memory.guest = guests.make_anew(
                run, self.name, there, present, snapshot_id=image_id, power_on=run.memory.power_on
            )

    def undo(self, run: Run) -> None:
        if _is_unshelved(run):
            return
        there = _there(run)
        if not run.memory.offloaded:
            if not guests.is_dead(run, there.host or ""):
                run.computes.stop_guest(run.context, there.host or "", token=run.token(self.name), instance=there)
            return
        guests.remove(run, self.name, there.host or "", there, run.devices())
        guests.keep_volumes_reserved(run, in_doubt=True)
        guests.unbind_ports(run, there)


class EndUnshelve(Step[Run]):
    """Sets the server to ACTIVE on the guest's host. A server that was off when it left a dead host is off again."""

    name = "EndUnshelve"
    reads = frozenset({"guest", "place", "power_on"})
    writes = frozenset({"image_id"})

    def do(self, run: Run) -> None:
        guest, there = run.memory.guest, _there(run)
        if guest is None:
            raise RuntimeError("the guest was not started")
        run.pivot()
        kept = {
            name: value for name, value in there.system_metadata.items() if name not in (IMAGE, SINCE, HOST, WAS_OFF)
        }
        becomes = VmState.ACTIVE if run.memory.power_on else VmState.STOPPED
        if endings.came_up(run, TASKS, guest, there, vm_state=becomes, system_metadata=kept):
            run.services.notifier.instance_action(run.context, there, "unshelve", "end", host=there.host or "")
            return
        record = instances.find(run.database, run.uuid, with_tags=False)
        if record is not None and IMAGE in record.system_metadata:
            # An administrator has set other states meanwhile: the record still names the image.
            run.memory.image_id = None


class DeleteImage(Step[Run]):
    """Deletes the image of the shelved server, which nothing needs any more."""

    name = "DeleteImage"
    reads = frozenset({"image_id"})

    def do(self, run: Run) -> None:
        if run.memory.image_id is not None:
            run.services.images.delete(run.context, run.memory.image_id)


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Restores the shelved server, without a host if it had none."""
    if run.memory.place is not None and not run.steps and not _is_unshelved(run):
        # The host was claimed for this operation, and no step began whose undo would release it.
        run.services.placement.delete_allocations(run.uuid)
    changes = {"host": None, "node": None} if run.memory.offloaded else {}
    endings.failed(run, cause, TASKS, **changes)


def _try_elsewhere(run: Run, cause: errors.CausewayError) -> bool:
    """Replaces this operation by one for another host. Returns False if none is left."""
    return _to_next_host(run, cause) or _to_another_cell(run, cause)


def _to_next_host(run: Run, cause: errors.CausewayError) -> bool:
    if not run.memory.offloaded or not next_host.is_left(run, cause):
        return False
    instances.update(run.database, run.uuid, host=None, node=None)
    next_host.try_it(run, UNSHELVE_VERSION, 1, cause)
    return True


def _to_another_cell(run: Run, cause: errors.CausewayError) -> bool:
    """Replaces this operation if no host of the cell will do and the server may leave the cell. Returns False if it may not."""
    memory = run.memory
    if not memory.may_leave_cell or not memory.offloaded or not isinstance(cause, errors.NoValidHost):
        return False
    there = UnshelveAcrossCellsMemory(
        run.cell.uuid, "", unshelve=dataclasses.replace(memory, place=None, may_leave_cell=False, failed_hosts={})
    )
    follower = follower_of(run.saga, operations.UNSHELVE_ACROSS_CELLS, UNSHELVE_ACROSS_CELLS_VERSION, there, 1, cause)
    requester = journal.requester(run.services.api, run.saga.id)
    instances.update(run.database, run.uuid, host=None, node=None)
    run.with_next_save(lambda connection: journal.insert_in(connection, follower, requester=requester))
    return True


UNSHELVE = Recipe(
    operations.UNSHELVE,
    (SelectHost(), StartGuest(), EndUnshelve(), DeleteImage()),
    pivot="EndUnshelve",
    rolled_back=_rolled_back,
    try_again=_try_elsewhere,
    undo_late=undo_claim,
    version=UNSHELVE_VERSION,
    memory=UnshelveMemory,
)
