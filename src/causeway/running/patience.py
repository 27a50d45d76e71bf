"""For how long steps are retried after a failure that may pass: one policy for all operations (docs/faults-of-parts.md).

What failed decides whether a step is retried at all (`CausewayError.passing`, `few_tries`). For how long depends on who or what
waits meanwhile.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from causeway.running.server_run import ServerRun
from causeway.sagas.environment import Options
from causeway.sagas.recipe import Step
from causeway.sagas.retries import NONE, Patience

R = TypeVar("R", bound=ServerRun[Any])


class While(Enum):
    """What is the case while a step is retried."""

    GUEST_RUNS = "the guest runs, was off before, or would not be restored by a rollback"
    GUEST_IS_OFF = "the guest is off, and ran before"
    REQUESTER_WAITS = "the requester waits for the answer"
    OTHER_HOSTS_ARE_LEFT = "other hosts are left"
    HOSTS_ARE_SILENT = "hosts are silent together"
    DEVICES_ARE_MADE = "devices of a new server are made"
    OTHERS_HAVE_THEIR_TURN = "others have their turn"
    SERVER_IS_DELETED = "the server is deleted"


class MoveOptions(Options, Protocol):
    """The options that the policy reads, besides those of the engine."""

    #: seconds for which a step is retried while its operation has the guest powered off
    patience_while_off: float


# Seconds: the longest pause between two attempts while somebody waits for the guest.
_LONGEST_PAUSE = 3.0
_FIXED = {
    While.REQUESTER_WAITS: NONE,
    While.OTHER_HOSTS_ARE_LEFT: NONE,
    # Hosts whose message queue restarted report again within this time.
    While.HOSTS_ARE_SILENT: Patience(60.0, _LONGEST_PAUSE),
    # The user waits for a server, and can ask for another one.
    While.DEVICES_ARE_MADE: Patience(10.0, _LONGEST_PAUSE),
    # An accepted delete is retried until it is done; only a refusal ends it.
    While.SERVER_IS_DELETED: Patience(math.inf, 60.0, persists=True),
}


def patience_while(what: While, options: MoveOptions) -> Patience:
    fixed = _FIXED.get(what)
    if fixed is not None:
        return fixed
    if what is While.GUEST_IS_OFF:
        return Patience(options.patience_while_off, min(options.stuck_retry_interval, _LONGEST_PAUSE))
    seconds = math.inf if what is While.OTHERS_HAVE_THEIR_TURN else options.patience
    return Patience(seconds, options.stuck_retry_interval)


class ServerStep(Step[R], Generic[R]):
    """A step of an operation on a server."""

    def retried_while(self, run: R) -> While:  # noqa: ARG002
        return While.GUEST_RUNS

    def patience(self, run: R) -> Patience:
        options: MoveOptions = run.unguarded.conf.moves
        return patience_while(self.retried_while(run), options)
