"""Reads again until when owners ask a drain to wait (`causeway.model.holds`), because they may have changed that."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from causeway import errors
from causeway.drains.look import Look
from causeway.drains.pace import is_due
from causeway.model.drains import ON_HOLD, DrainServer, DrainServerState
from causeway.model.holds import held_until
from causeway.store.api import mappings
from causeway.store.cell import many_servers
from causeway.store.database import utcnow


def reason_of(held: datetime) -> str:
    return f"{ON_HOLD} {held:%Y-%m-%d %H:%M} UTC."


def refresh(look: Look) -> None:
    """Updates servers that wait until a time. Their owners may have changed that time, removed it, or deleted the server."""
    now = utcnow()
    waiting = {
        server.instance_uuid: server
        for server in look.servers
        if server.state is DrainServerState.PENDING and not is_due(server, now)
    }
    if not waiting:
        return
    homes = mappings.cells_of(look.services.api, list(waiting))
    by_cell: dict[str, list[str]] = defaultdict(list)
    for uuid, cell_uuid in homes.items():
        if cell_uuid is not None:
            by_cell[cell_uuid].append(uuid)
    answers = look.services.cells.ask(
        by_cell, lambda cell, database: many_servers.metadata_of(database, by_cell[cell.uuid]), without_failed=True
    )
    silent = {cell.uuid for cell in answers.down}
    found = {uuid: metadata for of_cell in answers.by_cell.values() for uuid, metadata in of_cell.items()}
    for uuid, server in waiting.items():
        with look.apart(server):
            if uuid in found:
                _hold(look, server, found[uuid], now)
            elif homes.get(uuid) not in silent and look.is_gone(server):
                look.pass_over(server, "It was deleted.")


def _hold(look: Look, server: DrainServer, metadata: dict[str, str], now: datetime) -> None:
    try:
        held = held_until(metadata)
    except errors.BadRequest:
        # The request for the server's move reports the unreadable property.
        held = None
    if held is not None and held > now:
        if server.not_before != held:
            look.change(server, not_before=held, why=reason_of(held))
    elif server.not_before is not None and server.not_before > now + look.pause_after(server.attempts):
        # The server has waited for longer than any pause after a failure.
        look.change(server, not_before=None, why=None)
