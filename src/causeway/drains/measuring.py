"""Measures the bytes that moves have sent, from the journal, to find limits (`climbing`)."""

from __future__ import annotations

from datetime import UTC, datetime

from causeway.drains import climbing
from causeway.drains.look import Look
from causeway.drains.paths import rate_of
from causeway.model.drains import DrainServerState, Pacing
from causeway.store.api import drains as store
from causeway.store.database import utcnow


def measure(look: Look) -> None:
    """Measures, if the period is over. The bytes of moves that ended in the period count too."""
    pacing = look.drain.pacing or Pacing()
    now = utcnow().replace(tzinfo=UTC).timestamp()
    if now - pacing.at < look.services.conf.drains.measure_interval:
        return
    since = datetime.fromtimestamp(pacing.at, UTC).replace(tzinfo=None)
    concerned = {
        server.instance_uuid: server.request_id
        for server in look.servers
        if server.request_id is not None
        and (
            server.state is DrainServerState.ASKED
            or server.request_id in pacing.sent
            or (server.began_at is not None and server.began_at >= since)
        )
    }
    sent = store.bytes_sent(look.services.api, concerned)
    found = climbing.measured(pacing, look.request.limits, look.servers, sent, now, rate_of(look.services.conf))
    if found.sent or pacing.sent:
        store.change(look.services.api, look.drain, pacing=found)
