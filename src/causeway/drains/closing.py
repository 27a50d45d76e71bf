"""Closes the hosts of a drain's scope to new servers while it runs, and opens them if it is cancelled or rolled back.

Before a look closes a host, it writes that into the drain's row. The visible reason has the drain's id. A host that an operator
had disabled before stays disabled, and so does a host whose reason an operator has changed meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from causeway import errors
from causeway.drains.look import Look
from causeway.drains.scope import look_around
from causeway.faults import injector
from causeway.hosts.disabling import HostRecords, disable_for, enable_if_disabled_for
from causeway.hosts.liveness import BINARY
from causeway.model.drains import Scope, reason_of
from causeway.model.host import Service
from causeway.running.services import ConductorServices
from causeway.store.api import cells
from causeway.store.api import drains as store
from causeway.store.cell import hosts
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


def places_of(services: ConductorServices, scope: Scope) -> dict[str, str]:
    """Returns host -> its cell's uuid, for all places that a scope names; empty if it names only projects or servers.

    A place that no longer exists has no hosts: an emptied cell may be deleted at once.
    """
    ground = look_around(services.cells, services.conf)
    found: set[str] = set()
    for hosts_of, names in (
        (ground.hosts_of_cells, scope.cells),
        (ground.hosts_named, scope.hosts),
        (ground.hosts_of_aggregates, scope.aggregates),
        (ground.hosts_of_zones, scope.zones),
    ):
        for name in names:
            with suppress(errors.BadRequest):
                found |= hosts_of([name])
    return {host: ground.hosts[host] for host in sorted(found)}


def close(look: Look) -> None:
    """Closes the hosts of the scope that are open. If a host can't be closed now, a later look closes it."""
    services = look.services
    answers = services.cells.ask(
        set(look.places.values()), lambda _cell, database: _services(database), without_failed=True
    )
    for cell in answers.down:
        look.silent.add(cell.name)
        look.trouble(f"The database of {cell.name} does not answer.")
    for cell_uuid, found in answers.by_cell.items():
        for service in found:
            if look.places.get(service.host) == cell_uuid and not service.disabled:
                with _noting_trouble(look, f"Host {service.host} can't be closed to new servers now"):
                    _close(look, _records(look, cell_uuid), service)


def _records(look: Look, cell_uuid: str) -> HostRecords:
    services = look.services
    return HostRecords(services.api, services.placement, cell_uuid, services.cells.database(cell_uuid))


def _close(look: Look, records: HostRecords, service: Service) -> None:
    if service.host not in look.drain.closed:
        store.change(look.services.api, look.drain, closed=[*look.drain.closed, service.host])
    injector.reach("drain.close.noted")
    if disable_for(records, service, reason_of(look.drain.id)):
        LOG.info("Drain %s closed host %s to new servers", look.drain.id, service.host)
    injector.reach("drain.close.after")
    try:
        store.check_owner(look.services.api, look.drain)
    except errors.TakenOver:
        _open_unless_recorded(look, records, service)
        raise


def _open_unless_recorded(look: Look, records: HostRecords, service: Service) -> None:
    """Opens a host that a look has closed too late, unless the drain's row names it: otherwise it would stay closed."""
    present = store.find(look.services.api, look.drain.id)
    if present is None or service.host not in present.closed:
        enable_if_disabled_for(records, service, reason_of(look.drain.id))


def open_again(look: Look) -> bool:
    """Opens the hosts that the drain closed. Returns False if some can't be opened now."""
    mapped = cells.hosts(look.services.api)
    for host in list(look.drain.closed):
        with _noting_trouble(look, f"Host {host} can't be opened to new servers now"):
            injector.reach("drain.open.before")
            if host in mapped:
                _open(look, _records(look, mapped[host]), host)
            injector.reach("drain.open.after")
            left = [other for other in look.drain.closed if other != host]
            store.change(look.services.api, look.drain, closed=left)
    return not look.drain.closed


def _open(look: Look, records: HostRecords, host: str) -> None:
    service = next(iter(_services(records.database, host)), None)
    if service is None or (service.disabled and service.disabled_reason != reason_of(look.drain.id)):
        return
    # Called even if the host is open: a look may have died while closing it, after it had set the trait in Placement.
    if enable_if_disabled_for(records, service, reason_of(look.drain.id)):
        LOG.info("Drain %s opened host %s to new servers again", look.drain.id, host)


@contextmanager
def _noting_trouble(look: Look, what: str) -> Iterator[None]:
    """Logs and notes a failure with one host, so that the look continues with the others."""
    look.renew()
    try:
        yield
    except errors.TakenOver:
        raise
    except errors.CausewayError as failure:
        look.services.api.ping()
        LOG.warning("Drain %s: %s: %s %s", look.drain.id, what, failure.message, failure.details)
        look.trouble(f"{what}: {failure.message}")


def _services(database: Database, host: str | None = None) -> list[Service]:
    return hosts.list_services(database, host=host, binary=BINARY)
