"""What a host that was dead is to do when it comes back: what moves and deletes, which went on without it, left there.

Nothing is destroyed of which the records say by now that it lives there. A guest that still runs there is destroyed with its
disks only if the server lives elsewhere, or is deleted.
"""

from __future__ import annotations

import dataclasses
import logging

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed, MissedOrder
from causeway.model.moves import MOVE_ENDED
from causeway.model.outcomes import MoveToken
from causeway.model.states import MigrationStatus, TaskState
from causeway.store.api import journal, leftovers, migrations
from causeway.store.api.leftovers import Leftover
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)

# A migration with one of these may have something of the server at both of its hosts.
_BETWEEN_HOSTS: list[str] = [
    MigrationStatus.PRE_MIGRATING,
    MigrationStatus.MIGRATING,
    MigrationStatus.POST_MIGRATING,
    MigrationStatus.FINISHED,
    MigrationStatus.CONFIRMING,
    MigrationStatus.REVERTING,
]


def note(
    services: ConductorServices,
    host: str,
    cell_uuid: str,
    what: Missed,
    instance: Instance,
    block_devices: list[BlockDevice],
) -> None:
    """Notes what a host was not told by who is no move, in a transaction of its own."""
    missed = dataclasses.replace(missed_order(host, what, instance, None), block_devices=block_devices)
    with services.api.write() as connection:
        leftovers.note_in(connection, host, cell_uuid, missed)


def missed_order(host: str, what: Missed, instance: Instance, token: MoveToken | None) -> MissedOrder:
    move_id = token.move_id if token is not None else None
    return MissedOrder(leftovers.id_of(host, instance.uuid, move_id, what), what, instance, token=token)


def due(services: ConductorServices, host: str) -> list[MissedOrder]:
    """What a host may and must do now. What is of no use any more is forgotten."""
    found = []
    for leftover in leftovers.listed(services.api, host):
        missed = leftover.missed
        verdict = _verdict(services, leftover)
        if verdict is None:
            LOG.warning(
                "What %s left of server %s on %s is its own by now: it stays", missed.what, missed.instance.uuid, host
            )
            leftovers.delete(services.api, host, [missed.id])
        elif verdict:
            found.append(dataclasses.replace(missed, token=_present(services, missed.token)))
    return found


def clean(services: ConductorServices, context: RequestContext, host: str) -> None:
    """Has a host that runs carry out what it missed. What fails stays noted."""
    orders = due(services, host)
    if not orders:
        return
    for cell_uuid in {leftover.cell_uuid for leftover in leftovers.listed(services.api, host)}:
        done = services.computes(cell_uuid).carry_out_missed(context, host, orders=orders)
        leftovers.delete(services.api, host, done)


def _verdict(services: ConductorServices, leftover: Leftover) -> bool | None:
    """Whether it is to be done now; None: never."""
    missed, host = leftover.missed, leftover.host
    instance = _living(services, leftover.instance_uuid)
    if instance is None:
        return True if missed.what is not Missed.RESTORE_DISKS else None
    if missed.what is Missed.DESTROY:
        # Its delete has not come to its end, and is taken up again.
        return False if instance.task_state is TaskState.DELETING else None
    lives_there = instance.host == host
    if missed.what is Missed.RESTORE_DISKS:
        return True if lives_there else None
    if missed.what is Missed.DROP_CLAIM:
        return True
    if lives_there and missed.token is not None and _has_ended(services, missed.token.move_id):
        return None
    migration_uuid = missed.token.migration_uuid if missed.token is not None else None
    for other in migrations.search(services.api, instance_uuid=instance.uuid, statuses=_BETWEEN_HOSTS):
        if other.uuid != migration_uuid and host in (other.source_compute, other.dest_compute):
            return False
    return True


def _living(services: ConductorServices, instance_uuid: str) -> Instance | None:
    """The server where its mapping says that it lives; None if it is deleted."""
    try:
        _cell, database = services.cells.of_server(instance_uuid)
        return instances.get(database, instance_uuid)
    except errors.ServerNotFound:
        return None


def _has_ended(services: ConductorServices, move_id: str) -> bool:
    try:
        return journal.get(services.api, move_id).state in MOVE_ENDED
    except errors.NotFound:
        return True


def _present(services: ConductorServices, token: MoveToken | None) -> MoveToken | None:
    """The token with the move's present epoch: the host may have heard of that one already."""
    if token is None:
        return None
    try:
        return dataclasses.replace(token, epoch=max(token.epoch, journal.get(services.api, token.move_id).epoch))
    except errors.NotFound:
        return token
