"""Deletes servers, in any state and place, even while another operation works on them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.devices import releasing
from causeway.hosts import cleanups, liveness
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.shelved import IMAGE
from causeway.model.states import DELETING, TaskState, VmState
from causeway.moves.requests import request_confirm
from causeway.moves.steps.images import KEPT
from causeway.requests.of_servers import action_of
from causeway.running.operation_run import OperationRun
from causeway.running.patience import ServerStep, While
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, tpm_keys
from causeway.store import servers
from causeway.store.api import deletions, groups, journal, mappings
from causeway.store.cell import actions, instances
from causeway.store.cells import Cells

LOG = logging.getLogger(__name__)

_OTHER_TASKS: tuple[TaskState | None, ...] = (None, *(task for task in TaskState if task is not TaskState.DELETING))


@dataclass
class DeleteMemory:
    """``waits``: for the end of another operation. ``confirm``: id of the confirm that this delete requested.

    ``is_told``: the start of the delete was notified.
    """

    waits: bool = False
    confirm: str | None = None
    host: str | None = None
    is_told: bool = False


class DeleteRun(OperationRun[DeleteMemory]):
    """The server is read once: nothing else works on it."""

    def refresh(self) -> None:
        if self.is_repeated or self.is_undoing:
            self.read_anew()

    def read_anew(self) -> None:
        self._cache.clear()
        self._found_home = None

    def look(self) -> deletions.Sight:
        """Reads where the server is, and whether something prevents the delete. Raises ServerNotFound."""
        sight, cells = deletions.look(self.services.api, self.saga), self.services.cells
        self._found_home = cells.mapping(sight.cell_uuid), cells.database(sight.cell_uuid)
        return sight


Run: TypeAlias = DeleteRun


def mark(cells: Cells, context: RequestContext, instance: Instance, cell_uuid: str) -> None:
    """Sets the server's task and records the action, unless that is done already. Raises RecordsClosed."""

    def swap(connection: sa.Connection) -> None:
        instances.swap_in(connection, instance.uuid, expected_task=_OTHER_TASKS, task_state=TaskState.DELETING)
        actions.start_in(connection, action_of(context, instance, "delete"))

    try:
        servers.change(cells, instance.uuid, cell_uuid, swap)
    except errors.RecordsClosed:
        raise
    except errors.StateChanged:
        LOG.info("Server %s has its task already", instance.uuid)


class TearDown(ServerStep[Run]):
    """Waits until nothing else works on the server, then deletes its guest, ports, volumes, allocation and copies of its disk.

    A resize that waits for its confirm is confirmed first, so that nothing is left at the source.
    """

    name = "TearDown"
    writes = frozenset({"confirm", "host", "is_told", "waits"})

    def where(self, run: Run) -> str | None:
        return run.memory.host

    def retried_while(self, run: Run) -> While:  # noqa: ARG002
        return While.SERVER_IS_DELETED

    def do(self, run: Run) -> None:
        try:
            self._wait_for_others(run)
            instance, present = run.instance(), run.devices()
        except errors.ServerNotFound:
            return
        run.memory.host = instance.host
        if not run.memory.is_told:
            run.services.notifier.instance_action(
                run.context, instance, "delete", "start", host=instance.host or "", block_devices=present
            )
            run.memory.is_told = True
        with run.event(run.kind.event, instance.host):
            self._destroy(run, instance, present)
            releasing.release(run.services, run.context, instance, present)
            run.services.placement.delete_allocations(run.uuid)
            tpm_keys.delete(run.services, run.context, instance)
            known = instance.system_metadata
            for image_id in [*([known[IMAGE]] if IMAGE in known else []), *known.get(KEPT, "").split()]:
                run.services.images.delete(run.context, image_id)

    def _wait_for_others(self, run: Run) -> None:
        """Raises OperationUnderWay while another operation works on the server, and the error of a confirm that failed."""
        memory, sight = run.memory, run.look()
        memory.waits = True
        instance = run.instance()
        if instance.task_state is not TaskState.DELETING:
            # The API died after it accepted the request.
            try:
                mark(run.services.cells, run.context, instance, sight.cell_uuid)
            except errors.RecordsClosed as closed:
                raise errors.OperationUnderWay(f"Server {run.uuid} is between two cells.") from closed
            run.read_anew()
            sight = run.look()
        if sight.other is not None:
            raise errors.OperationUnderWay(f"Server {run.uuid} is deleted when its {sight.other} has ended.")
        confirm, memory.confirm = memory.confirm, None
        if sight.waits_for_confirm:
            memory.waits = confirm is None
            self._confirm(run, confirm)
        memory.waits = False

    def _confirm(self, run: Run, before: str | None) -> None:
        """Requests the confirm of the server's resize. ``before``: an earlier confirm, which failed."""
        if before is not None:
            failed = journal.get(run.services.api, before)
            raise errors.from_wire(failed.error) if failed.error else errors.OperationFailed("The confirm failed.")
        # An action of its own, so that the events of confirm and delete stay apart.
        own = run.context.for_another_request()
        try:
            run.memory.confirm = request_confirm(run.services, own, run.instance(), start=False)
            run.services.conductor.run_move(own, move_id=run.memory.confirm)
        except (errors.StateChanged, errors.MigrationNotFinished, errors.ServiceFailed) as obstacle:
            LOG.info("Server %s is not confirmed just now: %s", run.uuid, obstacle.message)
        raise errors.OperationUnderWay(f"Server {run.uuid} is deleted when its resize is confirmed.")

    def _destroy(self, run: Run, instance: Instance, present: list[BlockDevice]) -> None:
        """Destroys the guest and its disks. Does not wait for a host that is down, which gets the order when it is up again."""
        services, host = run.services, instance.host
        if not host:
            return
        if not liveness.of_host(services, run.database, host).is_up:
            cleanups.note(services, host, run.cell.uuid, Missed.DESTROY, instance, present)
            return
        services.notifier.instance_action(run.context, instance, "shutdown", "start", host=host, block_devices=present)
        run.computes.remove_guest(
            run.context, host, token=run.token(self.name), instance=instance, block_devices=present
        )
        services.notifier.instance_action(run.context, instance, "shutdown", "end", host=host, block_devices=present)


class EndDelete(Step[Run]):
    """Deletes the server's records."""

    name = "EndDelete"
    pivots = True

    def do(self, run: Run) -> None:
        try:
            instance, present = run.instance(), run.devices()
        except errors.ServerNotFound:
            return
        # The order matters: a client that no longer sees the server may request another member of its group for the same host.
        groups.remove_member(run.services.api, run.uuid)
        with run.database.write() as connection:
            run.write_history(connection)
            instances.soft_delete_in(connection, run.uuid)
        instance.vm_state, instance.task_state = VmState.DELETED, None
        run.services.notifier.instance_action(
            run.context, instance, "delete", "end", host=instance.host or "", block_devices=present
        )


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Sets the server to ERROR; it may be deleted again. A delete that was cancelled before it began changes nothing."""
    try:
        if run.is_recorded(cause.message):
            return
        # The mapping first: while the server has its task, no new delete is accepted.
        mappings.queue_for_delete(run.services.api, run.uuid, queued=False)
        endings.failed(run, cause, DELETING, **({"vm_state": VmState.ERROR} if run.steps else {}))
    except errors.ServerNotFound:
        return
    LOG.warning("Server %s was not deleted: %s", run.uuid, cause.message)


DELETE = Recipe(
    operations.DELETE,
    (TearDown(), EndDelete()),
    pivot="EndDelete",
    rolled_back=_rolled_back,
    memory=DeleteMemory,
)
