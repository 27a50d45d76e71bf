"""Quota with unified limits: the identity service says what a project may have; Placement and the mappings what it has.

Names: ``servers``, ``class:`` and a resource class, and those of `causeway.conf.quota.LOCAL`. A project's own limit goes before
the registered one; below 0 is no limit. What nobody has set a limit of is decided by [quota] unified_limits_resource_strategy.
"""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg
from oslo_limit import exception

from causeway import errors
from causeway.api import placed_usage
from causeway.api.services import ApiServices
from causeway.clients.limits import Limits
from causeway.clients.placement.types import Resources
from causeway.conf.quota import LOCAL, OF_CLASS, REQUIRE, SERVERS, UNIFIED
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta

UNLIMITED = -1
# Resource in quota sets -> here.
COUNTED = {"instances": SERVERS, "cores": OF_CLASS + placed_usage.VCPU, "ram": OF_CLASS + placed_usage.MEMORY_MB}
# Key pairs are a user's, whatever project the user works in: only the registered limit holds.
NO_PROJECTS = LOCAL["key_pairs"]


def in_force(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.quota.driver == UNIFIED)


def look_up(services: ApiServices, project_id: str | None) -> Limits:
    """Raises ServiceFailed if the identity service does not say what the limits are."""
    if services.limits is None:
        raise errors.ServiceFailed("The limits of the identity service can't be read: no client for them was made.")
    return services.limits.of_project(project_id)


def limit_of(conf: cfg.ConfigOpts, limits: Limits, resource: str) -> int:
    """What is enforced; negative is no limit."""
    found = limits.registered.get(resource) if resource == NO_PROJECTS else limits.get(resource)
    if found is not None:
        return found
    listed = resource in conf.quota.unified_limits_resource_list
    return 0 if listed == (conf.quota.unified_limits_resource_strategy == REQUIRE) else UNLIMITED


def shown(limits: Limits) -> dict[str, int]:
    """By the names of quota sets; as in the field, 0 where nobody has set a limit, whether it is enforced or not."""
    names = COUNTED | LOCAL
    return {
        ours: (limits.registered.get(name) if name == NO_PROJECTS else limits.get(name)) or 0
        for ours, name in names.items()
    }


def of_servers(
    conf: cfg.ConfigOpts, flavor: Flavor, *, volume_backed: bool, image: ImageMeta | None = None
) -> dict[str, int]:
    """What one more server of a flavor takes, itself not counted."""
    classes = placed_usage.of_flavor(flavor, volume_backed=volume_backed, image=image)
    if _folds_dedicated(conf) and "resources:PCPU" not in flavor.extra_specs:
        _fold(classes)
    return {OF_CLASS + name: amount for name, amount in classes.items()}


def in_use(services: ApiServices, project_id: str) -> dict[str, int]:
    """Servers, cores and ram, by the names of quota sets."""
    classes = placed_usage.amounts(services, project_id, None)
    if _folds_dedicated(services.conf):
        _fold(classes)
    return {
        "instances": placed_usage.servers(services, project_id),
        "cores": classes.get(placed_usage.VCPU, 0),
        "ram": classes.get(placed_usage.MEMORY_MB, 0),
    }


def check_local(conf: cfg.ConfigOpts, limits: Limits, project_id: str, name: str, used: int, more: int) -> None:
    """Raises OverQuota. ``name``: as in quota sets, of `LOCAL`."""
    resource = LOCAL[name]
    _refuse(project_id, {resource: limit_of(conf, limits, resource)}, {resource: used}, {resource: more})


def check_placed(services: ApiServices, limits: Limits, project_id: str, deltas: Mapping[str, int]) -> None:
    """Raises OverQuota unless the project may have that much more (resource -> amount) of servers and classes."""
    wanted = {name: amount for name, amount in deltas.items() if amount > 0}
    allowed = _limited(services.conf, limits, wanted)
    if allowed:
        room = {name: most - wanted[name] for name, most in allowed.items()}
        _refuse(project_id, allowed, _used(services, project_id, room), wanted)


def room_for(services: ApiServices, limits: Limits, project_id: str, each: Mapping[str, int], most: int) -> int:
    """How many, at most ``most``, of what takes that each may be had."""
    allowed = _limited(services.conf, limits, {name: amount for name, amount in each.items() if amount > 0})
    if not allowed:
        return most
    used = _used(services, project_id, {name: limit - most * each[name] for name, limit in allowed.items()})
    return min(most, *((limit - used.get(name, 0)) // each[name] for name, limit in allowed.items()))


def _limited(conf: cfg.ConfigOpts, limits: Limits, wanted: Mapping[str, int]) -> dict[str, int]:
    found = {name: limit_of(conf, limits, name) for name in wanted}
    return {name: limit for name, limit in found.items() if limit >= 0}


def _used(services: ApiServices, project_id: str, room: Mapping[str, int]) -> dict[str, int]:
    """What the project has of these resources; ``room``: more than that of one of them would be refused."""
    found: dict[str, int] = {}
    if SERVERS in room:
        found[SERVERS] = placed_usage.servers(services, project_id)
    of_classes = {name.removeprefix(OF_CLASS): most for name, most in room.items() if name.startswith(OF_CLASS)}
    if of_classes:
        folds = _folds_dedicated(services.conf) and placed_usage.PCPU not in of_classes
        # With both kinds of CPUs in one number, what those that wait for a cell take is looked up at once.
        classes = placed_usage.amounts(services, project_id, None, None if folds else of_classes)
        if folds:
            _fold(classes)
        found |= {OF_CLASS + name: classes.get(name, 0) for name in of_classes}
    return found


def _refuse(project_id: str, allowed: Mapping[str, int], used: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    over = [
        exception.OverLimitInfo(name, limit, used.get(name, 0), wanted[name])
        for name, limit in sorted(allowed.items())
        if 0 <= limit < used.get(name, 0) + wanted[name]
    ]
    if over:
        raise errors.OverQuota(str(exception.ProjectOverLimit(project_id, over)))


def _folds_dedicated(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.workarounds.unified_limits_count_pcpu_as_vcpu)


def _fold(classes: Resources) -> None:
    """Dedicated CPUs become CPUs."""
    if dedicated := classes.pop(placed_usage.PCPU, 0):
        classes[placed_usage.VCPU] = classes.get(placed_usage.VCPU, 0) + dedicated
