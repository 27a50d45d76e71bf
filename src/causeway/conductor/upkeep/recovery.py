"""Recovers work that a dead conductor did not finish. (Operations are not recovered here: they are in the journal.)

Recovery ends the task of a server, and sets the server to the state of its guest.

Normal work writes nothing for this, except that every conductor regularly updates its service record. If a server's task has not
changed for `recovery_interval`, a conductor asks all live conductors whether they work on the server. If all have answered, and
none works on it, the conductor ends the task. A conductor that lives but was thought dead can do no harm then: only the owner
of a task can end it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from causeway import errors
from causeway.context import RequestContext, admin_context
from causeway.model.host import CELL0_UUID
from causeway.model.instance import Instance
from causeway.model.states import DELETING, PowerState, VmState
from causeway.rpc.conductor import TOPIC, ConductorClient
from causeway.running.services import ConductorServices
from causeway.sagas.lives import Life
from causeway.store import history
from causeway.store.api import journal
from causeway.store.cell import hosts, instances
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)

INTERRUPTED = "The service was stopped while it worked on this server."
BINARY, SERVICE_VERSION = "nova-conductor", 1


class WorkEndpoint:
    """RPC: work_in_hand."""

    def __init__(self, life: Life, at_work: Callable[[], set[str]]) -> None:
        self._life = life
        self._at_work = at_work

    def work_in_hand(self, context: RequestContext) -> list[str]:  # noqa: ARG002
        """Returns the servers that this conductor works on.

        Raises ServiceRefused if another conductor has the same host: only one of them gets the call, and can't answer for both.
        """
        if self._life.namesakes():
            raise errors.ServiceRefused(
                f"Two conductors have the host {self._life.host}: give each its own, with the option host."
            )
        return sorted(self._at_work())


class Recovery:
    """Shows that this conductor is alive, and recovers the work of dead ones.

    ``at_work``: the servers that this conductor works on.
    """

    def __init__(
        self, services: ConductorServices, conductor: ConductorClient, at_work: Callable[[], set[str]]
    ) -> None:
        self._services = services
        self._conductor = conductor
        self._at_work = at_work

    def show_life(self) -> None:
        """Updates this conductor's service record, which is in cell0, as in Nova."""
        hosts.report_service(self._database, self._services.host, BINARY, TOPIC, SERVICE_VERSION)

    @property
    def _database(self) -> Database:
        return self._services.cells.database(CELL0_UUID)

    def look(self) -> None:
        """Recovers every task that no conductor works on."""
        before = utcnow() - timedelta(seconds=self._services.conf.conductor.recovery_interval)
        found = abandoned(self._services, before)
        if not found:
            return
        if self._services.life.namesakes():
            LOG.warning(
                "Two conductors have the host %s, so abandoned tasks are not recovered. Give each its own",
                self._services.host,
            )
            return
        known = self._at_work()
        for conductor in self._others():
            try:
                known |= set(self._conductor.work_in_hand(admin_context(), conductor))
            except errors.CausewayError as failure:
                LOG.info("Conductor %s does not say what it works on: %s", conductor, failure.message)
                return
        take_up(self._services, [work for work in found if work.instance.uuid not in known])

    def _others(self) -> list[str]:
        down_time: int = self._services.conf.service_down_time
        found = hosts.list_services(self._database, binary=BINARY)
        return [
            each.host for each in found if each.host != self._services.host and hosts.is_up(each, utcnow(), down_time)
        ]


@dataclass(frozen=True)
class _Task:
    """A server of a cell that has a task. ``database``: of the cell."""

    cell_uuid: str
    database: Database
    instance: Instance


def abandoned(services: ConductorServices, before: datetime) -> list[_Task]:
    """Returns tasks that have not changed since ``before``, except those of operations, in all cells that answer."""
    moving = {operation.instance_uuid for operation in journal.unfinished(services.api)}
    answers = services.cells.ask_all(
        lambda _cell, database: instances.busy_since(database, before), cell0=False, without_failed=True
    )
    found: list[_Task] = []
    for cell_uuid, busy in answers.by_cell.items():
        database = services.cells.open(services.cells.mapping(cell_uuid))
        # Whatever became of a delete, its operation is in the journal.
        left = (each for each in busy if each.uuid not in moving and each.task_state not in DELETING)
        found += [_Task(cell_uuid, database, each) for each in left]
    return found


def take_up(services: ConductorServices, found: list[_Task]) -> None:
    """Recovers work, on a thread for each cell. If some of it fails, the rest is recovered all the same."""
    by_cell: dict[str, list[_Task]] = defaultdict(list)
    for work in found:
        by_cell[work.cell_uuid].append(work)

    def of_cell(cell_uuid: str) -> None:
        for work in by_cell[cell_uuid]:
            if services.stopping.is_set():
                return
            try:
                if instances.take_up(work.database, work.instance):
                    _settle(services, cell_uuid, work.database, work.instance)
            except errors.DatabaseFailed:
                # The other servers would fail for the same reason, each after a timeout. The next look tries them.
                raise
            except errors.CausewayError as failure:
                LOG.warning("Server %s was not recovered: %s %s", work.instance.uuid, failure.message, failure.details)

    work_of = {cell_uuid: partial(of_cell, cell_uuid) for cell_uuid in by_cell}
    services.by_cell("Recovering abandoned tasks").each(work_of, services.cells.timeout)


def settle(services: ConductorServices) -> None:
    """Ends or repeats every task. Call this only while no conductor works on anything."""
    take_up(services, abandoned(services, utcnow()))


def _settle(services: ConductorServices, cell_uuid: str, database: Database, instance: Instance) -> None:
    LOG.warning("Server %s was left with task %s", instance.uuid, instance.task_state)
    if instance.vm_state is VmState.BUILDING:
        failure = errors.OperationFailed(f"{INTERRUPTED} It was not built: delete it and create another.")
        history.fail(database, instance.uuid, failure, instance.host, {instance.task_state}, vm_state=VmState.ERROR)
        return
    try:
        facts = services.computes(cell_uuid).inspect_instance(
            admin_context(), instance.host or "", instance_uuid=instance.uuid
        )
    except errors.CausewayError as failure:
        LOG.warning("Host %s can't report the state of server %s: %s", instance.host, instance.uuid, failure.message)
        return
    power_state = facts.power_state if facts.power_state is not None else PowerState.SHUTDOWN
    vm_state = instance.vm_state
    if vm_state in (VmState.ACTIVE, VmState.STOPPED):
        vm_state = VmState.ACTIVE if power_state is PowerState.RUNNING else VmState.STOPPED
    instances.update(
        database,
        instance.uuid,
        expected_task={instance.task_state},
        task_state=None,
        power_state=power_state,
        vm_state=vm_state,
    )
