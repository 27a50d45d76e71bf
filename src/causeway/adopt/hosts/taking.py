"""Looks at hosts, takes and releases them. Every step may be repeated, and is continued by whoever runs it again."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from causeway import errors
from causeway.adopt.hosts import nova_services, records
from causeway.adopt.hosts.comparison import compare, running
from causeway.adopt.hosts.nova_services import NovaService, ReadServices
from causeway.adopt.hosts.recorded import RecordedHost
from causeway.clients.placement import PlacementClient
from causeway.context import admin_context
from causeway.model.adoption import AdoptedHost, Finding, HostState
from causeway.model.found_host import FoundHost
from causeway.model.host import CellMapping
from causeway.rpc.adopting import AdoptingClient
from causeway.store.api import adopted_hosts
from causeway.store.cells import Cells

LOG = logging.getLogger(__name__)

# Seconds between two looks at Nova's services: three of its reports.
QUIET_SECONDS = 30.0
# What a host says of itself may be anything.
_MOST_FINDINGS = 1000


@dataclass
class AdoptServices:
    """``hosts_of``: the hosts of a cell. ``placement``: None: it is not asked. ``nova``: None: Nova's databases are not asked."""

    cells: Cells
    hosts_of: Callable[[CellMapping], AdoptingClient]
    placement: PlacementClient | None = None
    nova: ReadServices | None = None
    quiet_seconds: float = QUIET_SECONDS


def adopt_hosts(
    services: AdoptServices, hosts: Iterable[str], *, at_a_time: int = 1, take: bool = True
) -> Iterator[AdoptedHost]:
    """Looks at each of the hosts, and takes those where nothing blocks it. Yields each when it is done.

    ``take`` False: only looks. Raises NotFound, before it does anything, if a host is in no cell.
    """
    named = list(dict.fromkeys(hosts))
    for host in named:
        records.cell_of(services.cells, host)
    before: dict[str, list[NovaService]] = {}
    if services.nova is not None and take:
        before = {host: services.nova(host) for host in named}
        threading.Event().wait(services.quiet_seconds)
    with ThreadPoolExecutor(max(1, at_a_time), thread_name_prefix="adopt") as pool:
        yield from pool.map(lambda host: _adopt(services, host, before.get(host), take=take), named)


def _adopt(services: AdoptServices, host: str, before: list[NovaService] | None, *, take: bool) -> AdoptedHost:
    cell = records.cell_of(services.cells, host)
    adopted = adopted_hosts.find(services.cells.api, host) or AdoptedHost(host, cell.uuid)
    adopted.cell_uuid = cell.uuid
    computes = services.hosts_of(cell)
    try:
        found = computes.look(admin_context(), host)
    except errors.CausewayError as failure:
        adopted.findings = [_silent(host, failure)]
        return _saved(services, adopted)
    try:
        recorded = records.read(services.cells.api, services.cells.database(cell.uuid), host)
        findings = () if found.is_taken else _findings(services, found, recorded, before, take=take)
        differences = list(itertools.islice(findings, _MOST_FINDINGS))
    except errors.CausewayError as failure:
        adopted.findings = [_unread(host, failure)]
        return _saved(services, adopted)
    if found.is_taken:
        # Its guests are what orders made of them, not what was imported: what differed when it was taken stays noted.
        adopted.findings = [finding for finding in adopted.findings if not finding.blocks] + running(found)
        if not take:
            adopted.state = HostState.TAKEN
            return _saved(services, adopted)
    else:
        adopted.state = _state_of(found, adopted.state)
        adopted.findings = differences
        _saved(services, adopted)
        if not take or any(finding.blocks for finding in adopted.findings):
            return adopted
        if adopted.state is not HostState.TAKEN:
            # Before: an import that runs when this process has died must not write over what the host's service records.
            adopted.state = HostState.TAKING
            _saved(services, adopted)
    try:
        guests = [guest.uuid for guest in found.hypervisor.guests]
        computes.take(admin_context(), host, node_uuid=recorded.node_uuid or "", guests=guests)
    except errors.CausewayError as failure:
        adopted.findings.append(_refused(host, failure))
        adopted.state = _state_now(computes, host, adopted.state)
        return _saved(services, adopted)
    adopted.state = HostState.TAKEN
    return _saved(services, adopted)


def _state_now(computes: AdoptingClient, host: str, noted: HostState) -> HostState:
    """Of a host whose take failed: only the host knows whether it is Causeway's."""
    try:
        return _state_of(computes.look(admin_context(), host), noted)
    except errors.CausewayError as failure:
        LOG.warning("Whether host %s was taken is unknown: %s %s", host, failure.message, failure.details)
        return noted


def _state_of(found: FoundHost, noted: HostState) -> HostState:
    """``noted``: what was noted of it before."""
    if found.is_taken or noted is HostState.TAKEN:
        # If it is not: a hand-back died when the host was released. Nova's records may lack what changed here meanwhile.
        return HostState.TAKEN
    # Nova can't start where its identity is held: whoever was taking or releasing the host died.
    return HostState.TAKING if any(each.is_held for each in found.identities) else HostState.LOOKED


def _findings(
    services: AdoptServices,
    found: FoundHost,
    recorded: RecordedHost,
    before: list[NovaService] | None,
    *,
    take: bool,
) -> Iterator[Finding]:
    yield from compare(found, recorded)
    if services.placement is not None and recorded.node_uuid is not None:
        yield from _provider(services.placement, recorded)
    if not take:
        return
    yield from running(found)
    if services.nova is None or before is None:
        yield Finding(
            "nova.unasked",
            found.host,
            "Nova's databases were not asked whether its nova-compute reports.",
            "Give --nova-config; else make sure that it runs nowhere, also not in another container.",
            blocks=False,
        )
    else:
        yield from nova_services.compare(found.host, before, services.nova(found.host))


def _provider(placement: PlacementClient, recorded: RecordedHost) -> Iterator[Finding]:
    provider = placement.get_provider(str(recorded.node_uuid))
    if provider is None:
        yield Finding(
            "provider.missing",
            recorded.host,
            f"Placement has no provider {recorded.node_uuid}.",
            "Use the Placement that Nova uses ([placement]); if it is, find out why Nova reports another provider.",
        )
    elif recorded.hypervisor_hostname and provider.name != recorded.hypervisor_hostname:
        yield Finding(
            "provider.name",
            recorded.host,
            f"Its provider in Placement is called {provider.name}; {recorded.hypervisor_hostname} is recorded.",
            "Look whether the provider is that of another host.",
        )


def note_released(services: AdoptServices, hosts: Iterable[str]) -> list[AdoptedHost]:
    """Notes that Nova's records of the hosts are true again: of all or, if this process dies, of none."""
    released = [AdoptedHost(host, records.cell_of(services.cells, host).uuid, HostState.RELEASED) for host in hosts]
    with services.cells.api.write() as connection:
        adopted_hosts.save_in(connection, released)
    return released


def end_service(services: AdoptServices, host: str) -> None:
    """Ends the compute service of a host, so that nova-compute can be started there. May be repeated.

    Raises Conflict while operations run there, and what the call of the host raises.
    """
    cell = records.cell_of(services.cells, host)
    recorded = records.read(services.cells.api, services.cells.database(cell.uuid), host)
    under_way = adopted_hosts.operations_on(services.cells.api, host, {server.uuid for server in recorded.servers})
    if under_way:
        raise errors.Conflict(
            f"{len(under_way)} operations run on host {host}: wait for their end, or cancel them.",
            details=", ".join(f"{recipe} {uuid}" for uuid, recipe in under_way[:10]),
        )
    services.hosts_of(cell).release(admin_context(), host)


def _silent(host: str, failure: errors.CausewayError) -> Finding:
    return Finding(
        "host.silent",
        host,
        f"Its compute service can't look: {failure.message} {failure.details}".strip(),
        "Start `causeway compute` there with [adopt] nova_state_path.",
    )


def _unread(host: str, failure: errors.CausewayError) -> Finding:
    return Finding(
        "records.unread",
        host,
        f"It could not be compared: {failure.message} {failure.details}".strip(),
        "Run it again when the database, or Placement, answers.",
    )


def _refused(host: str, failure: errors.CausewayError) -> Finding:
    return Finding(
        "take.failed", host, f"It could not be taken: {failure.message} {failure.details}".strip(), "Run it again."
    )


def _saved(services: AdoptServices, adopted: AdoptedHost) -> AdoptedHost:
    adopted_hosts.save(services.cells.api, adopted)
    return adopted
