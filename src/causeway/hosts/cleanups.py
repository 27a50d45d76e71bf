"""The cleanups that a dead host must do when it is back, because moves, builds and deletes continued without it.

Nothing is destroyed that lives on the host according to the present records. A guest that still runs there is destroyed with its
disks only if the server lives elsewhere, or was deleted.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

import msgspec

from causeway import errors
from causeway.context import RequestContext, admin_context
from causeway.hosts import liveness, whereabouts
from causeway.hosts.whereabouts import Whereabouts
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed, MissedOrder
from causeway.model.operations import Operation
from causeway.model.outcomes import OperationToken
from causeway.model.sagas import ENDED, SagaState
from causeway.model.states import TaskState
from causeway.running.services import ConductorServices
from causeway.store.api import cleanups, journal
from causeway.store.api.cleanups import Cleanup
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


def note(
    services: ConductorServices,
    host: str,
    cell_uuid: str,
    what: Missed,
    instance: Instance,
    block_devices: list[BlockDevice],
    token: OperationToken | None = None,
) -> None:
    """Notes, in a transaction of its own, an order that a host missed. ``token``: of the order, if it had one."""
    missed = dataclasses.replace(missed_order(host, what, instance, token), block_devices=block_devices)
    with services.api.write() as connection:
        cleanups.note_in(connection, host, cell_uuid, missed)


def try_now(
    services: ConductorServices,
    database: Database,
    host: str,
    order: Callable[[], None],
    *,
    raised: type[errors.CausewayError],
) -> bool:
    """Gives a host an order if it is up. Returns False if it has not carried it out: then the caller notes the order.

    ``database``: of the host's cell. ``raised``: errors that are for the caller.
    """
    if not liveness.of_host(services, database, host).is_up:
        return False
    try:
        order()
    except raised:
        raise
    except errors.CausewayError as failure:
        LOG.info("Host %s does not clean up now: %s %s", host, failure.message, failure.details)
        return False
    return True


def missed_order(host: str, what: Missed, instance: Instance, token: OperationToken | None) -> MissedOrder:
    operation_id = token.operation_id if token is not None else None
    # The order may wait for days, and needs no password.
    instance = dataclasses.replace(instance, admin_password=None)
    return MissedOrder(cleanups.id_of(host, instance.uuid, operation_id, what), what, instance, token=token)


def due(services: ConductorServices, host: str, *, may_ask: bool = True) -> list[MissedOrder]:
    """The orders that a host must carry out now. Deletes those that are no longer needed.

    ``may_ask``: whether other hosts are asked, which may take as long as a call. Otherwise, what depends on them is not due.

    A server whose cell does not answer does not delay the others: its disks stay, and its guest is powered off, since it may run
    elsewhere.
    """
    noted = cleanups.listed(services.api, host)
    # Before the records are read: who ends afterwards may have changed them again.
    over = {cleanup.id for cleanup in noted if _is_over(services, cleanup)}
    servers = whereabouts.look_for(services, {cleanup.instance_uuid for cleanup in noted})
    orders = (_due(services, servers, cleanup, is_over=cleanup.id in over, may_ask=may_ask) for cleanup in noted)
    return [order for order in orders if order is not None]


def _is_over(services: ConductorServices, cleanup: Cleanup) -> bool:
    """Whether the operation that noted the cleanup has ended, so that the server's records say where it lives."""
    token = cleanup.missed.token if cleanup.missed is not None else None
    if token is not None:
        return _has_ended(services, token.operation_id)
    return journal.active_of_server(services.api, cleanup.instance_uuid) is None


def clean(services: ConductorServices, context: RequestContext, host: str) -> None:
    """Has a running host carry out its missed orders. Those that fail stay noted."""
    orders = due(services, host)
    if not orders:
        return
    for cell_uuid in cleanups.cells_of(services.api, host):
        done = services.computes(cell_uuid).carry_out_missed(context, host, orders=orders)
        cleanups.delete(services.api, host, done)


def _due(
    services: ConductorServices, servers: Whereabouts, cleanup: Cleanup, *, is_over: bool, may_ask: bool
) -> MissedOrder | None:
    """The order that the host must carry out for a cleanup now, if any. ``is_over``: as of before the servers were looked for."""
    missed, host, living = cleanup.missed, cleanup.host, servers.living.get(cleanup.instance_uuid)
    if missed is None:
        return None if living is None or living.host == host else _stop(services, host, living, None)
    if cleanup.instance_uuid in servers.unclear and missed.what is not Missed.RELEASE_CLAIM:
        servers.require_elsewhere(cleanup.instance_uuid, host, cleanup.cell_uuid)
        return _stop(services, host, missed.instance, missed.token)
    if missed.what is Missed.DISCARD_COPIES:
        verdict: bool | None = is_over and _discards_copies(services, servers, host, missed, may_ask=may_ask)
    else:
        verdict = _verdict(services, host, missed, living, is_over=is_over)
    if verdict is None:
        LOG.warning(
            "The order %s for server %s is no longer needed on host %s: the server lives there, or elsewhere",
            missed.what,
            cleanup.instance_uuid,
            host,
        )
        cleanups.delete(services.api, host, [cleanup.id])
    if not verdict:
        return None
    what = Missed.DESTROY if missed.what is Missed.REMOVE else missed.what
    return dataclasses.replace(missed, what=what, token=_present(services, missed.token))


def _stop(
    services: ConductorServices, host: str, instance: Instance, token: OperationToken | None
) -> MissedOrder | None:
    """The order to stop the guest of a server that lives elsewhere, if nothing else can be done now."""
    if _moves_there(services, host, instance.uuid, token):
        return None
    LOG.warning("Server %s is no longer on %s: its guest there must be off", instance.uuid, host)
    return MissedOrder.stop(instance)


def _discards_copies(
    services: ConductorServices, servers: Whereabouts, host: str, missed: MissedOrder, *, may_ask: bool
) -> bool:
    """Whether copies of a running guest's disks can go: their move has ended, and the server is whole without them."""
    uuid = missed.instance.uuid
    living = servers.living.get(uuid)
    if living is None or living.host in (None, host):
        return True
    if not may_ask:
        return False
    try:
        whereabouts.require_whole(services, admin_context(), living, servers.cells[uuid] or "")
    except errors.CausewayError as failure:
        LOG.info("Copies of server %s stay on %s: %s %s", uuid, host, failure.message, failure.details)
        return False
    return True


def _verdict(
    services: ConductorServices, host: str, missed: MissedOrder, instance: Instance | None, *, is_over: bool
) -> bool | None:
    """Whether to carry out an order now; None if never. ``instance``: None if the server was deleted."""
    if missed.what is Missed.RELEASE_CLAIM:
        return _releases_claim(services, host, missed, is_over=is_over)
    if instance is None:
        return True if missed.what is not Missed.RESTORE_DISKS else None
    lives_there = instance.host == host
    if missed.what is Missed.DESTROY:
        if instance.task_state in (TaskState.DELETING, TaskState.SPAWNING):
            # The delete, or the build that continued without the host, has not ended. If needed, it is resumed.
            return False
        if lives_there:
            return None
    if missed.what is Missed.REMOVE and lives_there:
        # An operation that is being rolled back may not have recorded yet that it no longer needs this.
        return None if is_over else False
    if missed.what is Missed.RESTORE_DISKS:
        if not lives_there:
            return None
    elif lives_there and missed.token is not None and is_over:
        return None
    return not _moves_there(services, host, instance.uuid, missed.token)


def _moves_there(services: ConductorServices, host: str, instance_uuid: str, token: OperationToken | None) -> bool:
    """Whether a move other than the token's may have something of the server on the host."""
    if whereabouts.migrates(services, instance_uuid, host, besides=token.migration_uuid if token is not None else None):
        return True
    # This is another try of the same migration.
    return token is not None and any(
        _is_live(operation) and _chose(operation, host) for operation in _tries(services, token)
    )


def _releases_claim(services: ConductorServices, host: str, missed: MissedOrder, *, is_over: bool) -> bool | None:
    """Whether the host should release a claim.

    The tries of a migration share it, so a try that is under way may still need it.
    """
    token = missed.token
    if token is None:
        return None
    tries = _tries(services, token)
    if not is_over or any(_is_live(operation) for operation in tries):
        return False
    return None if any(_chose(operation, host) for operation in tries) else True


def _tries(services: ConductorServices, token: OperationToken) -> list[Operation]:
    """The other moves of a move's migration."""
    tries = journal.of_migration(services.api, token.migration_uuid)
    return [operation for operation in tries if operation.id != token.operation_id]


def _is_live(operation: Operation) -> bool:
    return operation.state not in ENDED and operation.state is not SagaState.REFUSED


def _chose(operation: Operation, host: str) -> bool:
    return (operation.data.get("selection") or {}).get("host") == host


def _has_ended(services: ConductorServices, operation_id: str) -> bool:
    try:
        return journal.get(services.api, operation_id).state in ENDED
    except errors.NotFound:
        return True


def _present(services: ConductorServices, token: OperationToken | None) -> OperationToken | None:
    """The token with the move's present epoch, which the host may have seen already."""
    if token is None:
        return None
    try:
        return msgspec.structs.replace(
            token, epoch=max(token.epoch, journal.get(services.api, token.operation_id).epoch)
        )
    except errors.NotFound:
        return token
