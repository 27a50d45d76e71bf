"""Announces the work of a drain: in notifications, and in the histories of its servers, for their owners.

The conductor that wrote a change notifies of it afterwards. So nothing is sent twice, and a conductor that lost the drain sends
nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.model.drains import Drain, DrainServer, DrainServerState, DrainState
from causeway.model.instance import InstanceAction
from causeway.notify.notifier import Notifier
from causeway.store import servers
from causeway.store.cell import actions, instances
from causeway.store.cells import Cells

# The name of the action in a server's history.
ACTION = "drain"
# As long as the column of an event's details, which users read.
_LONGEST = 255

_OF_DRAINS = {
    DrainState.PAUSED: "pause",
    DrainState.DONE: "end",
    DrainState.CANCELLED: "end",
    DrainState.ROLLED_BACK: "end",
}
_OF_SERVERS = {
    DrainServerState.ASKED: "start",
    DrainServerState.MOVED: "moved",
    DrainServerState.DONE: "end",
    DrainServerState.PASSED_OVER: "end",
    DrainServerState.REVERTED: "end",
    DrainServerState.FAILED: "error",
}


def notify_of_drain(notifier: Notifier, context: RequestContext, drain: Drain) -> None:
    """Notifies of a state that a conductor set. The API notifies of administrators' requests."""
    notifier.drain(context, drain, _OF_DRAINS[drain.state])


def notify_of_server(
    notifier: Notifier, context: RequestContext, drain: Drain, server: DrainServer, before: DrainServerState
) -> None:
    """Notifies of the state that a server of the drain has now. ``before``: its state until then."""
    phase = _OF_SERVERS.get(server.state)
    if server.state is DrainServerState.MOVED and before is not DrainServerState.ASKED:
        # The confirm or revert failed, so the server has not moved.
        phase = None
    if phase is not None:
        notifier.drain_server(context, drain, server, phase)


def notify_of_failure(notifier: Notifier, context: RequestContext, drain: Drain, server: DrainServer) -> None:
    """Notifies that a move failed and is tried again."""
    notifier.drain_server(context, drain, server, "error")


def note_in_history(cells: Cells, drain: Drain, uuid: str, cell_uuid: str) -> None:
    """Writes into a server's history which drain moves it, and why. Writes this once, however often the move is tried."""
    # The drain has an entry of its own, which stays even if the move fails; the move has another one.
    request_id = f"req-{drain.id}"

    def note(connection: sa.Connection) -> None:
        instances.touch_in(connection, uuid)
        if not actions.is_recorded_in(connection, uuid, request_id):
            entry = InstanceAction(
                action=ACTION,
                instance_uuid=uuid,
                request_id=request_id,
                user_id=drain.user_id,
                project_id=drain.project_id,
                message=_sentence(drain),
            )
            actions.start_in(connection, entry)

    try:
        servers.change(cells, uuid, cell_uuid, note)
    except errors.ServerNotFound:
        return


def _sentence(drain: Drain) -> str:
    why = f": {drain.request.reason}" if drain.request.reason else "."
    return f"Drain {drain.name} ({drain.id}) moves the server away from where it is{why}"[:_LONGEST]
