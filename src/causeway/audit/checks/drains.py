"""Drains: a conductor works on those that run, and ended ones left nothing under way and no host closed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.drains import AT_REST, Drain, DrainServerState, DrainState, reason_of

# Conductors look every few seconds: within this time another one acquires a lease that ran out.
TAKEOVER = timedelta(seconds=60)
# Hosts that these closed stay closed: they are empty, and are to be removed.
_KEEP_CLOSED = frozenset({DrainState.DONE, *(state for state in DrainState if state not in AT_REST)})


def without_owner(snapshot: Snapshot) -> Iterator[Disagreement]:
    for drain in snapshot.drains.values():
        if drain.state in AT_REST:
            continue
        since = drain.lease_until or drain.started_at
        if since is not None and snapshot.taken_at - since > TAKEOVER:
            yield Disagreement(
                "drain.without_owner",
                Severity.ERROR,
                f"drain {drain.id}",
                None,
                f"Drain {drain.name} is {_words(drain.state)}: no conductor has looked at it since {since:%Y-%m-%d %H:%M} UTC.",
                left="Start a conductor whose [drains] interval is not 0, and look at its log: whichever looks continues it.",
            )


def closed_hosts(snapshot: Snapshot) -> Iterator[Disagreement]:
    for host, drain_id in snapshot.closed_hosts.items():
        drain = snapshot.drains.get(drain_id)
        if drain is not None and drain.state in _KEEP_CLOSED:
            continue
        if drain is None:
            yield Disagreement(
                "host.closed_by_unknown_drain",
                Severity.WARNING,
                f"host {host}",
                None,
                f"Host {host} takes no new servers because of drain {drain_id}, of which there is no record any more.",
                left=f"If it is to take servers again, enable it: openstack compute service set --enable {host} nova-compute.",
            )
        else:
            yield Disagreement(
                "host.closed_by_ended_drain",
                Severity.ERROR,
                f"host {host}",
                None,
                f"Host {host} takes no new servers because of drain {drain.name} ({drain_id}), which is {_words(drain.state)}.",
                Fix("open_host", {"host": host, "reason": reason_of(drain_id)}),
            )


def servers(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Servers of drains whose requests were not followed up: a conductor that looks at a drain does that soon."""
    for row in snapshot.drained:
        drain = snapshot.drains.get(row.drain_id)
        if drain is None:
            continue
        is_over = drain.state in AT_REST
        if not is_over and not snapshot.is_old(row.began_at):
            continue
        what, name = f"drain {drain.id}", f"drain {drain.name} ({drain.id}), which is {_words(drain.state)}"
        if snapshot.standing(row.instance_uuid) in (ServerStanding.DELETED, ServerStanding.UNKNOWN):
            yield Disagreement(
                "drain.server_gone",
                Severity.WARNING,
                what,
                row.instance_uuid,
                f"The server is {_words(row.state)} in {name}, but it is not there any more.",
                left=_look_or_delete(drain),
            )
        elif row.state is DrainServerState.ASKED and row.request_id not in snapshot.requests_of_drains:
            yield Disagreement(
                "drain.request_unknown",
                Severity.ERROR,
                what,
                row.instance_uuid,
                f"The server's move was asked for by {name}, but no operation knows of request {row.request_id}.",
                left=_look_or_delete(drain),
            )
        elif is_over:
            yield Disagreement(
                "drain.server_unsettled",
                Severity.WARNING,
                what,
                row.instance_uuid,
                f"The server is {_words(row.state)} in {name}, and its outcome was not recorded.",
                left="`openstack server show` shows where it is, `causeway operation list` what works on it.",
            )


def places(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Drains that have not ended, but name cells that don't exist."""
    names = {name for cell in snapshot.cells.values() for name in (cell.name, cell.uuid)}
    for drain in snapshot.drains.values():
        if drain.state in AT_REST and drain.state is not DrainState.PLANNED:
            continue
        for cell in sorted({*drain.request.scope.cells, *drain.request.targets.cells} - names):
            yield Disagreement(
                "drain.without_cell",
                Severity.WARNING,
                f"drain {drain.id}",
                None,
                f"Drain {drain.name} is {_words(drain.state)}, and names cell {cell}, which does not exist any more.",
                left=f"Cancel it (openstack drain cancel {drain.id}), and plan another one if servers are to be moved still.",
            )


def _look_or_delete(drain: Drain) -> str:
    if drain.state in AT_REST:
        return f"Nothing works on it; delete its record: openstack drain delete {drain.id}."
    return "A conductor that looks at it clears this up: see the conductors' logs, and whether [drains] interval is 0."


def _words(state: DrainState | DrainServerState) -> str:
    return state.value.replace("_", " ")
