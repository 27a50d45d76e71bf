"""Looks again, while a drain runs, at servers that could not go, and at servers without a target.

A server that has a plan but was busy moves as planned when it is no longer busy. A server for which there was no way, or that
needs another one of the drain's targets, is planned again.
"""

from __future__ import annotations

import dataclasses
import logging
from datetime import timedelta

from causeway import errors
from causeway.drains.look import Look
from causeway.drains.movable import find_movable
from causeway.drains.pace import is_due
from causeway.drains.plan import plan_of
from causeway.model.drains import DrainServer, DrainServerState, How, Scope
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# The fields of a server's row that a plan sets.
_PLANNED = ("how", "target_cell", "target_host", "new_flavor", "bytes", "seconds", "pause", "why", "help")


def needs_plan(look: Look, server: DrainServer) -> bool:
    """Whether a server must be planned before it moves: it has no target, and the drain names some.

    A server that moves as records needs a cell in any case.
    """
    if server.how in (How.RECORDS, How.EVACUATE):
        return server.target_cell is None
    return server.target_host is None and look.names_targets


def reconsider(look: Look) -> None:
    now = utcnow()
    to_plan: list[DrainServer] = []
    silent = look.silent_cells()
    for server in look.servers:
        if not is_due(server, now) or server.source_cell in silent:
            continue
        if server.state is DrainServerState.BLOCKED:
            with look.apart(server):
                if find_movable(look, server) is None:
                    continue
                if server.how is None:
                    to_plan.append(server)
                else:
                    look.change(server, state=DrainServerState.PENDING, why=None, help=None, not_before=None)
        elif server.state is DrainServerState.PENDING and needs_plan(look, server):
            with look.apart(server):
                if find_movable(look, server) is not None:
                    to_plan.append(server)
    if to_plan:
        _plan_again(look, to_plan)


def _plan_again(look: Look, servers: list[DrainServer]) -> None:
    again = utcnow() + timedelta(seconds=look.services.conf.drains.retry_pause)
    scope = Scope(servers=[server.instance_uuid for server in servers])
    try:
        plan = plan_of(look.services, look.context(), dataclasses.replace(look.request, scope=scope))
    except errors.CausewayError as failure:
        LOG.warning("Drain %s: %s servers can't be planned again: %s", look.drain.id, len(servers), failure.message)
        for server in servers:
            look.change(server, not_before=again)
        return
    planned = {server.instance_uuid: server for server in plan.servers}
    for server in servers:
        found = planned.get(server.instance_uuid)
        if found is None or found.state is DrainServerState.BLOCKED:
            look.change(
                server,
                state=DrainServerState.BLOCKED,
                why=found.why if found else server.why,
                help=found.help if found else server.help,
                how=None,
                not_before=again,
            )
        else:
            values = {name: getattr(found, name) for name in _PLANNED}
            if server.how is How.EVACUATE and found.how is How.RECORDS:
                # The server has left its host already, and is started in the cell of its records.
                values |= {"how": How.EVACUATE, "why": None}
                look.change(server, state=DrainServerState.PENDING, not_before=None, **values)
                continue
            look.change(server, state=found.state, not_before=None, **values)
