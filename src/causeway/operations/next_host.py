"""A host failed to make the guest of a server that left its own: another operation tries the next host.

The failed host has nothing of the server by then: the undo of its step waits until the host has removed the guest, or is fenced.
"""

from __future__ import annotations

import logging
from typing import Any

from causeway import errors
from causeway.model.host_failures import may_be_of_host
from causeway.operations.run import OperationRun
from causeway.parts.followers import follower_of
from causeway.store.api import journal

LOG = logging.getLogger(__name__)

#: host -> why it failed
FailedHosts = dict[str, str]


def is_left(run: OperationRun[Any], cause: errors.CausewayError, wanted_host: str | None, failed: FailedHosts) -> bool:
    """Whether another host may succeed: the user named none, and ``[scheduler] max_attempts`` allows one more."""
    return wanted_host is None and may_be_of_host(cause) and len(failed) + 1 < run.services.conf.scheduler.max_attempts


def try_it(run: OperationRun[Any], version: int, memory: Any, memory_version: int, cause: errors.CausewayError) -> None:
    """Requests the operation anew with ``memory``, in the transaction that ends this one."""
    follower = follower_of(run.saga, run.saga.recipe, version, memory, memory_version, cause)
    requester = journal.requester(run.services.api, run.saga.id)
    run.with_next_save(lambda connection: journal.insert_in(connection, follower, requester=requester))


def none_is_left(refusal: errors.NoValidHost, failed: FailedHosts) -> errors.NoValidHost:
    """The refusal, with what the hosts said that were tried before."""
    said = " ".join(f"{host} failed: {message}" for host, message in failed.items())
    return errors.NoValidHost(f"{refusal.message} {said}".strip(), details=refusal.details)
