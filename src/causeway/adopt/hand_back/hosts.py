"""Hands hosts back: what has changed is written, the hosts are released, and what changed meanwhile is written too.

A host counts as Causeway's until all is written. So whoever repeats this after it died does no harm, unless nova-compute was
started before.
"""

from __future__ import annotations

from collections.abc import Sequence

from causeway import errors
from causeway.adopt.hand_back.cloud import HandBack, HandedBack
from causeway.adopt.hand_back.unsettled import Unsettled
from causeway.adopt.hosts import records, taking
from causeway.adopt.hosts.taking import AdoptServices
from causeway.adopt.nova import NovaCloud
from causeway.store.api import adopted_hosts


def chosen(services: AdoptServices, hosts: Sequence[str], cell: str | None) -> list[str]:
    """The named hosts, those of the cell that are Causeway's, or all that are. Raises Conflict if a named one is not."""
    owned = adopted_hosts.owned(services.cells.api)
    if hosts:
        others = sorted(set(hosts) - owned)
        if others:
            raise errors.Conflict(f"Not Causeway's, so that there is nothing to hand back: {', '.join(others)}.")
        return list(dict.fromkeys(hosts))
    if cell is not None:
        return [host for host in records.hosts_of(services.cells, cell) if host in owned]
    return sorted(owned)


def unsettled(services: AdoptServices, nova: NovaCloud, hosts: Sequence[str]) -> list[Unsettled]:
    return _of(services, nova).unsettled(hosts)


def difference(services: AdoptServices, nova: NovaCloud) -> HandedBack:
    """What would be written."""
    return _of(services, nova).run(write=False)


def hand_back(services: AdoptServices, nova: NovaCloud, hosts: Sequence[str]) -> HandedBack:
    """``nova``: opened as writable. Raises Conflict while operations run on a host, and what the call of a host raises."""
    servers = _of(services, nova)
    done = servers.run()
    for host in hosts:
        taking.end_service(services, host)
    # These hosts change nothing now.
    done.add(servers.run())
    taking.note_released(services, hosts)
    return done


def _of(services: AdoptServices, nova: NovaCloud) -> HandBack:
    return HandBack(nova, services.cells.api, services.cells, adopted_hosts.owned(services.cells.api))


__all__ = ["chosen", "difference", "hand_back", "unsettled"]
