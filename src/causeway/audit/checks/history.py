"""The history of servers: every event that began has an end."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.operation_kinds import ACTIONS

# Actions whose work is in the journal: without an operation nothing works on them.
JOURNALED = frozenset(ACTIONS)


def never_ended(snapshot: Snapshot) -> Iterator[Disagreement]:
    for event in snapshot.open_events:
        home = snapshot.home(event.server)
        if event.server in snapshot.working:
            continue
        if home is not None and event.cell_uuid != home.cell_uuid:
            # The history of a copy is replaced, or deleted with the copy.
            continue
        if event.action not in JOURNALED and not snapshot.is_old(event.started):
            continue
        yield Disagreement(
            "event.unfinished",
            Severity.WARNING,
            f"event {event.event} of {event.action}, {event.started}",
            event.server,
            f"The event {event.event} of the action {event.action} began at {event.started} and never ended.",
            Fix("end_event", {"cell_uuid": event.cell_uuid, "event_id": event.event_id}),
        )
