"""Quota: limits from options, class, project and user; usage is counted over all cells, never stored.

Whoever makes something calls `check_deltas` (servers, cores, ram) or `check_count` first.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway import errors
from causeway.api.services import ApiServices
from causeway.context import RequestContext
from causeway.store.api import build_requests, groups, keypairs, mappings, quotas
from causeway.store.api.quotas import Effective
from causeway.store.cell import instances as instance_records
from causeway.store.cell.instances import CellUsage

UNLIMITED = -1
COUNTED = ("instances", "cores", "ram")
# resource (as in quota sets) -> option in group [quota]
RESOURCES = {
    "instances": "instances",
    "cores": "cores",
    "ram": "ram",
    "metadata_items": "metadata_items",
    "injected_files": "injected_files",
    "injected_file_content_bytes": "injected_file_content_bytes",
    "injected_file_path_bytes": "injected_file_path_length",
    "key_pairs": "key_pairs",
    "server_groups": "server_groups",
    "server_group_members": "server_group_members",
}
# The network service enforces its own; as in the field, what is set here is kept and shown and limits nothing.
NETWORK = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")
# The field keeps these for projects only: what is set for a user is set for the project.
WHOLE_PROJECT = ("fixed_ips", "floating_ips")
_ALL = (*RESOURCES, *NETWORK)


@dataclass(frozen=True)
class Usage:
    """What a project (or a user in it) has. ``ram`` in MiB."""

    instances: int = 0
    cores: int = 0
    ram: int = 0


def defaults(services: ApiServices) -> dict[str, int]:
    """The options, overlaid by the quota class ``default``."""
    found = _options(services) | quotas.limits(services.api, quotas.DEFAULT_CLASS)
    return {resource: found[resource] for resource in _ALL}


def _options(services: ApiServices) -> dict[str, int]:
    configured = {resource: services.conf.quota[option] for resource, option in RESOURCES.items()}
    return configured | dict.fromkeys(NETWORK, UNLIMITED)


def limits(
    services: ApiServices, project_id: str, user_id: str | None = None, known: Effective | None = None
) -> dict[str, int]:
    """What applies to a project, or to a user in it, for every resource; -1 is no limit. ``known``: what was read before."""
    whole, own = known or quotas.effective(services.api, project_id, user_id or "")
    found = _options(services) | whole | (own if user_id else {})
    return {resource: found[resource] for resource in _ALL}


def usage(services: ApiServices, project_id: str, user_id: str | None = None) -> Usage:
    """Counts the servers of a project in all cells that answer, and those that have no cell yet; each server once."""
    answers = services.cells.ask_all(lambda _cell, database: instance_records.usage(database, project_id, user_id))
    taken = [found.settled for found in answers.by_cell.values()] + _moving(services, answers.by_cell)
    servers, cores, ram = (sum(amounts) for amounts in zip((0, 0, 0), *taken, strict=True))
    pending = build_requests.list_for(services.api, project_id)
    if pending:
        # One whose server is in a cell already was counted there.
        mapped = mappings.cells_of(services.api, [request.instance_uuid for request in pending])
        for request in pending:
            if mapped.get(request.instance_uuid) is None and user_id in (None, request.instance.user_id):
                servers += 1
                cores += request.instance.flavor.vcpus
                ram += request.instance.flavor.memory_mb
    return Usage(servers, cores, ram)


def _moving(services: ApiServices, by_cell: dict[str, CellUsage]) -> list[tuple[int, int, int]]:
    """Servers that may have a copy in two cells, each once: as the copy in the cell where it lives.

    If that cell has none that moves, it was read when the move had ended, and counted there.
    """
    copies: dict[str, dict[str, tuple[int, int, int]]] = {}
    for cell_uuid, found in by_cell.items():
        for uuid, (cores, ram) in found.moving.items():
            copies.setdefault(uuid, {})[cell_uuid] = (1, cores, ram)
    mapped = mappings.cells_of(services.api, sorted(copies))
    counted = []
    for uuid, places in copies.items():
        home = mapped.get(uuid)
        if home in places:
            counted.append(places[home])
        elif home is not None and home not in by_cell:
            # Its cell does not answer; what the other copy has is what is known.
            counted.append(next(iter(places.values())))
    return counted


def check_deltas(
    services: ApiServices,
    context: RequestContext,
    project_id: str,
    *,
    user_id: str | None = None,
    instances: int = 0,
    cores: int = 0,
    ram: int = 0,
    known: Effective | None = None,
) -> None:
    """Raises OverQuota unless the project (and the user, where they have limits of their own) may have that much more.

    ``user_id``: whose servers they are; None: the caller's. ``known``: their limits, if they were read before. What does not
    grow is not checked.
    """
    asked = {"instances": instances, "cores": cores, "ram": ram}
    wanted = {resource: amount for resource, amount in asked.items() if amount > 0}
    user_id = user_id or context.user_id
    whole, own = known or quotas.effective(services.api, project_id, user_id or "")
    _check(services, wanted, _options(services) | whole, project_id, None)
    if own:
        _check(services, wanted, {resource: own.get(resource, UNLIMITED) for resource in COUNTED}, project_id, user_id)


def _check(
    services: ApiServices, wanted: dict[str, int], allowed: dict[str, int], project_id: str, user_id: str | None
) -> None:
    limited = {resource: amount for resource, amount in wanted.items() if allowed[resource] != UNLIMITED}
    if not limited:
        return
    used = usage(services, project_id, user_id)
    over = [name for name, amount in limited.items() if getattr(used, name) + amount > allowed[name]]
    if over:
        names = ", ".join(over)
        raise errors.OverQuota(
            f"Quota exceeded for {names}: Requested {', '.join(str(limited[name]) for name in over)}, "
            f"but already used {', '.join(str(getattr(used, name)) for name in over)} "
            f"of {', '.join(str(allowed[name]) for name in over)} {names}"
        )


def check_count(
    services: ApiServices,
    project_id: str,
    resource: str,
    count: int,
    message: str,
    user_id: str | None = None,
    known: Effective | None = None,
) -> None:
    """Raises OverQuota with ``message`` if ``count`` of a resource is more than its limit."""
    allowed = limits(services, project_id, user_id, known)[resource]
    if allowed != UNLIMITED and count > allowed:
        raise errors.OverQuota(message)


def in_use(services: ApiServices, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """Usage by resource, for quota details and limits; what belongs to single servers or users is 0, as in the field."""
    used = usage(services, project_id, user_id)
    owned = [group for group in groups.list_for(services.api, project_id) if user_id in (None, group.user_id)]
    found = dict.fromkeys(_ALL, 0)
    found |= {"instances": used.instances, "cores": used.cores, "ram": used.ram, "server_groups": len(owned)}
    return found


def key_pair_count(services: ApiServices, user_id: str) -> int:
    return len(keypairs.list_for(services.api, user_id))
