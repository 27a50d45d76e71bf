"""A host failed to make the guest of a server that left its own: another operation tries the next host.

The failed host has nothing of the server by then: the undo of its step waits until the host has removed the guest, or is fenced.

The memories of these operations have ``wanted_host`` (the one that the user named), ``place``, ``guest`` and ``failed_hosts``.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from causeway import errors
from causeway.model.host_failures import may_be_of_host
from causeway.model.instance import Instance
from causeway.moves import placing
from causeway.running.followers import follower_of
from causeway.running.operation_run import OperationRun
from causeway.scheduler.request import MoveClaim
from causeway.store.api import journal

LOG = logging.getLogger(__name__)

#: host -> why it failed
FailedHosts = dict[str, str]


def choose(
    run: OperationRun[Any],
    instance: Instance,
    *,
    forced: bool = False,
    move: MoveClaim | None = None,
    storage: str | None = None,
) -> placing.ClaimedHost:
    """Chooses and claims a host that has not failed. Raises NoValidHost, with what the hosts said that were tried before.

    ``storage``: of the server's disks, if several hosts reach it; these are preferred.
    """
    memory = run.memory
    try:
        return placing.choose(
            *(run.services, run.context, instance, run.cell.uuid),
            order=run.order,
            host=memory.wanted_host,
            forced=forced,
            move=move,
            ignore=memory.failed_hosts,
            storage=storage,
        )
    except errors.NoValidHost as refusal:
        said = " ".join(f"{host} failed: {message}" for host, message in memory.failed_hosts.items())
        raise errors.NoValidHost(f"{refusal.message} {said}".strip(), details=refusal.details) from refusal


def is_left(run: OperationRun[Any], cause: errors.CausewayError) -> bool:
    """Whether a host was tried and another may succeed: the user named none, and [scheduler] max_attempts allows one more."""
    memory = run.memory
    if memory.place is None or memory.wanted_host is not None or not may_be_of_host(cause):
        return False
    most: int = run.services.conf.scheduler.max_attempts
    return len(memory.failed_hosts) + 1 < most


def try_it(run: OperationRun[Any], version: int, memory_version: int, cause: errors.CausewayError) -> None:
    """Requests the operation anew for another host, in the transaction that ends this one."""
    memory, host = run.memory, run.memory.place.host
    LOG.warning("Host %s could not make the guest of server %s: %s", host, run.uuid, cause.message)
    again = dataclasses.replace(
        memory, place=None, guest=None, failed_hosts={**memory.failed_hosts, host: cause.message}
    )
    follower = follower_of(run.saga, run.saga.recipe, version, again, memory_version, cause)
    requester = journal.requester(run.services.api, run.saga.id)
    run.with_next_save(lambda connection: journal.insert_in(connection, follower, requester=requester))
