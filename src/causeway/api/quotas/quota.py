"""Quota: what a project may have, and what it has. The latter is counted and never stored.

[quota] driver says where limits come from: options, classes, projects and users (here), the identity service
(`causeway.api.quotas.unified_limits`), or nowhere. Code that makes something calls `check_servers`, `check_resize`,
`check_unshelve`, `check_restore` or `check_count` first; all raise OverQuota.

Requests may be counted at the same time. With [quota] recheck_quota the transaction that accepts new servers compares what
they take with what was accepted since (`accept_in`), and those that make groups, members of groups and key pairs count again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from causeway import errors
from causeway.api.quotas import placed_usage, unified_limits
from causeway.api.services import ApiServices
from causeway.clients.limits import Limits
from causeway.conf.quota import NOOP, SERVERS
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.store.api import accepted, groups, keypairs, mappings, quotas
from causeway.store.api.accepted import Total
from causeway.store.api.quotas import Effective, Places
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
# The network service enforces its own. As in Nova, limits that are set here are stored and shown, but have no effect.
NETWORK = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")
# Nova has these for projects only: setting one for a user sets it for the project.
WHOLE_PROJECT = ("fixed_ips", "floating_ips")
_ALL = (*RESOURCES, *NETWORK)
# The limits of a project and of a user in it, as they were read: a request that checks several things reads them once.
Known: TypeAlias = Effective | Limits


@dataclass(frozen=True)
class Fit:
    """``count`` new servers for which there was room. ``taken``: resource -> what they take.

    ``free``: resource -> what the closest limit leaves beside them. ``accepted``: the project's total before it was counted.
    """

    count: int
    taken: dict[str, int]
    free: dict[str, int]
    accepted: Total


@dataclass(frozen=True)
class Usage:
    """What a project (or a user in it) has. ``ram`` in MiB."""

    instances: int = 0
    cores: int = 0
    ram: int = 0


# --- limits


def are_limits_stored_here(services: ApiServices) -> bool:
    """Whether limits can be set through our API."""
    return not unified_limits.in_force(services.conf) and not _is_off(services)


def _is_off(services: ApiServices) -> bool:
    return bool(services.conf.quota.driver == NOOP)


def look_up(services: ApiServices, project_id: str, user_id: str | None = None, *, servers: bool = False) -> Known:
    """The limits, to be passed on as ``known``. Raises ServiceFailed if the identity service does not answer.

    ``servers``: the caller will check servers, for which these are counted.
    """
    if unified_limits.in_force(services.conf):
        return unified_limits.look_up(services, project_id)
    places = servers and not services.conf.quota.count_usage_from_placement
    return quotas.effective(services.api, project_id, user_id or "", places=places)


def defaults(services: ApiServices) -> dict[str, int]:
    """The limits of projects that have none of their own: the options, overlaid by the quota class ``default``."""
    if unified_limits.in_force(services.conf):
        found = unified_limits.shown(unified_limits.look_up(services, None))
    else:
        found = _options(services) | quotas.limits(services.api, quotas.DEFAULT_CLASS)
    return _all_of(services, found)


def _options(services: ApiServices) -> dict[str, int]:
    configured = {resource: services.conf.quota[option] for resource, option in RESOURCES.items()}
    return configured | dict.fromkeys(NETWORK, UNLIMITED)


def _all_of(services: ApiServices, found: dict[str, int]) -> dict[str, int]:
    if _is_off(services):
        return dict.fromkeys(_ALL, UNLIMITED)
    return {resource: found.get(resource, UNLIMITED) for resource in _ALL}


def limits(
    services: ApiServices, project_id: str, user_id: str | None = None, known: Known | None = None
) -> dict[str, int]:
    """Resource -> the limit of a project, or of a user in it; -1: no limit. ``known``: what `look_up` returned before."""
    known = known or look_up(services, project_id, user_id)
    if isinstance(known, Limits):
        return _all_of(services, unified_limits.shown(known))
    return _all_of(services, _options(services) | known.whole | (known.own if user_id else {}))


# --- what is in use


def usage(services: ApiServices, project_id: str, user_id: str | None = None, places: Places | None = None) -> Usage:
    """What a project's servers use: by our records, or with [quota] count_usage_from_placement by Placement.

    ``places``: where the servers are, if that was read just now.
    """
    if not services.conf.quota.count_usage_from_placement:
        return _of_records(services, project_id, user_id, places)
    classes = placed_usage.amounts(services, project_id, user_id)
    cores = classes.get(placed_usage.VCPU, 0) + classes.get(placed_usage.PCPU, 0)
    return Usage(placed_usage.servers(services, project_id, user_id), cores, classes.get(placed_usage.MEMORY_MB, 0))


def _of_records(services: ApiServices, project_id: str, user_id: str | None, places: Places | None) -> Usage:
    """Counts the servers in those of the project's cells that answer, and those that have no cell yet.

    A server that moves from now on, to a cell where the project had none, is found in the one that it leaves. Only one whose
    records there were deleted before they are counted is missed.
    """
    # First: one that gets its cell from now on is not counted there.
    places = places or quotas.effective(services.api, project_id, places=True).places or Places()
    counted = [server.uuid for server in places.pending]
    answers = services.cells.ask(
        sorted(places.cells),
        lambda _cell, database: instance_records.usage(database, project_id, user_id, without=counted),
    )
    taken = [found.settled for found in answers.by_cell.values()] + _moving(services, answers.by_cell)
    taken += [(1, server.cores, server.ram) for server in places.pending if user_id in (None, server.user_id)]
    servers, cores, ram = (sum(amounts) for amounts in zip((0, 0, 0), *taken, strict=True))
    return Usage(servers, cores, ram)


def _moving(services: ApiServices, by_cell: dict[str, CellUsage]) -> list[tuple[int, int, int]]:
    """(1, cores, ram) of each server that may have records in two cells: by the record in the cell where it lives.

    If that cell was read and has no moving record, it was read after the move had ended, and the server was counted there.
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
            # Its cell does not answer, or has got the server only now: only the other record is known.
            counted.append(next(iter(places.values())))
    return counted


def in_use(services: ApiServices, project_id: str, user_id: str | None = None) -> dict[str, int]:
    """Usage by resource, for quota details and limits. Resources of single servers and users are 0, as in Nova."""
    if _is_off(services):
        return dict.fromkeys(_ALL, UNLIMITED)
    if unified_limits.in_force(services.conf):
        # Unified limits are those of whole projects.
        user_id = None
        counted = unified_limits.in_use(services, project_id)
    else:
        used = usage(services, project_id, user_id)
        counted = {name: getattr(used, name) for name in COUNTED}
    owned = [group for group in groups.list_for(services.api, project_id) if user_id in (None, group.user_id)]
    return dict.fromkeys(_ALL, 0) | counted | {"server_groups": len(owned)}


def reserved(services: ApiServices) -> int:
    """What quota details show as reserved. There are no reservations."""
    return UNLIMITED if _is_off(services) else 0


def key_pair_count(services: ApiServices, user_id: str) -> int:
    return len(keypairs.list_for(services.api, user_id))


# --- checks


@dataclass(frozen=True)
class Wanted:
    """What each of some new servers will be, and whose they are."""

    project_id: str
    user_id: str | None
    flavor: Flavor
    volume_backed: bool = False
    image: ImageMeta | None = None


def check_servers(services: ApiServices, wanted: Wanted, count: int, known: Known) -> Fit:
    """Raises OverQuota if there can't be ``count`` more servers."""
    if isinstance(known, Limits):
        taken = {name: count * each for name, each in _each(services, wanted).items()}
        total = accepted.read(services.api, accepted.of_project(wanted.project_id))
        free = unified_limits.check_placed(services, known, wanted.project_id, taken)
        return Fit(count, taken, free, total)
    flavor = wanted.flavor
    taken = {"instances": count, "cores": count * flavor.vcpus, "ram": count * flavor.memory_mb}
    free = check_deltas(services, wanted.project_id, wanted.user_id, **taken, known=known)
    return Fit(count, taken, free, known.accepted)


def rechecks(services: ApiServices) -> bool:
    """Whether requests at the same time are compared with one another."""
    return bool(services.conf.quota.recheck_quota)


def accept_in(services: ApiServices, connection: sa.Connection, project_id: str, fit: Fit) -> None:
    """Called in the transaction that accepts new servers. Raises AcceptedMeanwhile if they have to be counted again."""
    if fit.free and rechecks(services):
        accepted.add_in(connection, accepted.of_project(project_id), fit.accepted, fit.taken, fit.free)


def room_for(services: ApiServices, wanted: Wanted, most: int, known: Known) -> int:
    """How many servers, at most ``most``, fit into what project and user have left; may be negative."""
    if isinstance(known, Limits):
        return unified_limits.room_for(services, known, wanted.project_id, _each(services, wanted), most)
    each = {"instances": 1, "cores": wanted.flavor.vcpus, "ram": wanted.flavor.memory_mb}
    room = [most]
    for user_id in (None, wanted.user_id):
        allowed = limits(services, wanted.project_id, user_id, known)
        used = usage(services, wanted.project_id, user_id, _places(known))
        for resource, amount in each.items():
            if allowed[resource] != UNLIMITED and amount:
                room.append((allowed[resource] - getattr(used, resource)) // amount)
    return min(room)


def _each(services: ApiServices, wanted: Wanted) -> dict[str, int]:
    classes = unified_limits.of_servers(
        services.conf, wanted.flavor, volume_backed=wanted.volume_backed, image=wanted.image
    )
    return {SERVERS: 1} | classes


def check_resize(
    services: ApiServices, instance: Instance, flavor: Flavor, *, volume_backed: Callable[[], bool]
) -> None:
    """Raises OverQuota if a server can't have another flavor.

    With unified limits the whole new flavor has to fit, as in Nova: until the resize is confirmed or reverted, the old
    flavor counts too.
    """
    if unified_limits.in_force(services.conf):
        _check_claim(services, instance, flavor, volume_backed=volume_backed)
        return
    check_deltas(
        services,
        instance.project_id,
        instance.user_id,
        cores=flavor.vcpus - instance.flavor.vcpus,
        ram=flavor.memory_mb - instance.flavor.memory_mb,
    )


def check_unshelve(services: ApiServices, instance: Instance, *, volume_backed: Callable[[], bool]) -> None:
    """Raises OverQuota if a server without a host can't have one again. Placement does not count it meanwhile."""
    if unified_limits.in_force(services.conf):
        _check_claim(services, instance, instance.flavor, volume_backed=volume_backed)
    elif services.conf.quota.count_usage_from_placement:
        flavor = instance.flavor
        check_deltas(services, instance.project_id, instance.user_id, cores=flavor.vcpus, ram=flavor.memory_mb)


def check_restore(services: ApiServices, instance: Instance) -> None:
    """Raises OverQuota if a soft-deleted server can't be restored. Our own count leaves it out; Placement counts it."""
    if are_limits_stored_here(services) and not services.conf.quota.count_usage_from_placement:
        flavor = instance.flavor
        check_deltas(
            services,
            instance.project_id,
            instance.user_id,
            instances=1,
            cores=flavor.vcpus,
            ram=flavor.memory_mb,
        )


def _check_claim(
    services: ApiServices, instance: Instance, flavor: Flavor, *, volume_backed: Callable[[], bool]
) -> None:
    known = unified_limits.look_up(services, instance.project_id)
    classes = unified_limits.of_servers(services.conf, flavor, volume_backed=volume_backed(), image=instance.image_meta)
    unified_limits.check_placed(services, known, instance.project_id, classes)


def check_deltas(
    services: ApiServices,
    project_id: str,
    user_id: str | None,
    *,
    instances: int = 0,
    cores: int = 0,
    ram: int = 0,
    known: Effective | None = None,
) -> dict[str, int]:
    """Raises OverQuota if the project, or the user if they have limits of their own, can't have that much more.

    Returns what is left of limited resources after that, by the closest limit.
    For limits that are stored here. ``user_id``: the owner of the servers. ``known``: the limits, if they were read before.
    What does not grow is not checked.
    """
    if _is_off(services):
        return {}
    asked = {"instances": instances, "cores": cores, "ram": ram}
    wanted = {resource: amount for resource, amount in asked.items() if amount > 0}
    if known is None:
        places = bool(wanted) and not services.conf.quota.count_usage_from_placement
        known = quotas.effective(services.api, project_id, user_id or "", places=places)
    free = _check(services, wanted, _options(services) | known.whole, project_id, None, known.places)
    if known.own:
        allowed = {resource: known.own.get(resource, UNLIMITED) for resource in COUNTED}
        of_user = _check(services, wanted, allowed, project_id, user_id, known.places)
        free |= {name: min(left, free.get(name, left)) for name, left in of_user.items()}
    return free


def _places(known: Known) -> Places | None:
    return known.places if isinstance(known, Effective) else None


def _check(
    services: ApiServices,
    wanted: dict[str, int],
    allowed: dict[str, int],
    project_id: str,
    user_id: str | None,
    places: Places | None,
) -> dict[str, int]:
    limited = {resource: amount for resource, amount in wanted.items() if allowed[resource] != UNLIMITED}
    if not limited:
        return {}
    used = usage(services, project_id, user_id, places)
    free = {name: allowed[name] - getattr(used, name) - amount for name, amount in limited.items()}
    over = [name for name, left in free.items() if left < 0]
    if over:
        names = ", ".join(over)
        raise errors.OverQuota(
            f"Quota exceeded for {names}: Requested {', '.join(str(limited[name]) for name in over)}, "
            f"but already used {', '.join(str(getattr(used, name)) for name in over)} "
            f"of {', '.join(str(allowed[name]) for name in over)} {names}"
        )
    return free


def check_count(
    services: ApiServices,
    project_id: str,
    resource: str,
    message: str,
    *,
    used: int = 0,
    more: int,
    user_id: str | None = None,
    known: Known | None = None,
) -> None:
    """Raises OverQuota with ``message`` if there can't be ``more`` of a resource beside those ``used``.

    With unified limits the message is another one of Nova's, which names the limit.
    """
    if unified_limits.in_force(services.conf):
        found = known if isinstance(known, Limits) else unified_limits.look_up(services, project_id)
        unified_limits.check_local(services.conf, found, project_id, resource, used, more)
        return
    allowed = limits(services, project_id, user_id, known)[resource]
    if allowed != UNLIMITED and used + more > allowed:
        raise errors.OverQuota(message)
