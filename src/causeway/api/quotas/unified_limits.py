"""Quota with unified limits: the identity service says what a project may have; Placement and the mappings say what it has.

Names of resources: ``servers``, ``class:`` and a resource class, and those of `causeway.conf.quota.LOCAL`. A project's own limit
precedes the registered one; a negative one is no limit. For resources without any, [quota] unified_limits_resource_strategy
decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg
from oslo_limit import exception

from causeway import errors
from causeway.api.quotas import placed_usage
from causeway.api.services import ApiServices
from causeway.clients.limits import Limits
from causeway.clients.placement.types import Resources
from causeway.conf.quota import LOCAL, OF_CLASS, REQUIRE, SERVERS, UNIFIED
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta

UNLIMITED = -1
# Resource in quota sets -> its name here.
COUNTED = {"instances": SERVERS, "cores": OF_CLASS + placed_usage.VCPU, "ram": OF_CLASS + placed_usage.MEMORY_MB}
# Key pairs belong to users and not to projects: only the registered limit holds.
NO_PROJECTS = LOCAL["key_pairs"]


def in_force(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.quota.driver == UNIFIED)


def look_up(services: ApiServices, project_id: str | None) -> Limits:
    """A project's limits (None: only the registered ones). Raises ServiceFailed if the identity service does not answer."""
    if services.limits is None:
        raise errors.ServiceFailed("The limits of the identity service can't be read: no client for them was made.")
    return services.limits.of_project(project_id)


def limit_of(conf: cfg.ConfigOpts, limits: Limits, resource: str) -> int:
    """The limit that is enforced; negative if there is none."""
    found = limits.registered.get(resource) if resource == NO_PROJECTS else limits.get(resource)
    if found is not None:
        return found
    listed = resource in conf.quota.unified_limits_resource_list
    return 0 if listed == (conf.quota.unified_limits_resource_strategy == REQUIRE) else UNLIMITED


def shown(limits: Limits) -> dict[str, int]:
    """Limits by the names of quota sets. As in Nova, one that is not set is 0, whether that is enforced or not."""
    names = COUNTED | LOCAL
    return {
        ours: (limits.registered.get(name) if name == NO_PROJECTS else limits.get(name)) or 0
        for ours, name in names.items()
    }


def of_servers(
    conf: cfg.ConfigOpts, flavor: Flavor, *, volume_backed: bool, image: ImageMeta | None = None
) -> dict[str, int]:
    """``class:`` name -> what one more server of a flavor takes; ``servers`` is not in it."""
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
    """Raises OverQuota if there can't be ``more`` of a resource. ``name``: a key of `LOCAL`, as in quota sets."""
    resource = LOCAL[name]
    _refuse(project_id, {resource: limit_of(conf, limits, resource)}, {resource: used}, {resource: more})


def check_placed(services: ApiServices, limits: Limits, project_id: str, deltas: Mapping[str, int]) -> dict[str, int]:
    """Raises OverQuota unless the project may have that much more of servers and classes (resource -> amount).

    Returns what is left of limited resources after that.
    """
    wanted = {name: amount for name, amount in deltas.items() if amount > 0}
    allowed = _limited(services.conf, limits, wanted)
    if not allowed:
        return {}
    used = _used(services, project_id, {name: most - wanted[name] for name, most in allowed.items()})
    _refuse(project_id, allowed, used, wanted)
    return {name: most - used.get(name, 0) - wanted[name] for name, most in allowed.items()}


def room_for(services: ApiServices, limits: Limits, project_id: str, each: Mapping[str, int], most: int) -> int:
    """How many servers, at most ``most``, the project may have that take ``each`` (resource -> amount); may be negative."""
    allowed = _limited(services.conf, limits, {name: amount for name, amount in each.items() if amount > 0})
    if not allowed:
        return most
    used = _used(services, project_id, {name: limit - most * each[name] for name, limit in allowed.items()})
    return min(most, *((limit - used.get(name, 0)) // each[name] for name, limit in allowed.items()))


def _limited(conf: cfg.ConfigOpts, limits: Limits, wanted: Mapping[str, int]) -> dict[str, int]:
    found = {name: limit_of(conf, limits, name) for name in wanted}
    return {name: limit for name, limit in found.items() if limit >= 0}


def _used(services: ApiServices, project_id: str, room: Mapping[str, int]) -> dict[str, int]:
    """Resource -> what the project has of it. ``room``: resource -> what it may have before a request is refused."""
    found: dict[str, int] = {}
    if SERVERS in room:
        found[SERVERS] = placed_usage.servers(services, project_id)
    of_classes = {name.removeprefix(OF_CLASS): most for name, most in room.items() if name.startswith(OF_CLASS)}
    if of_classes:
        folds = _folds_dedicated(services.conf) and placed_usage.PCPU not in of_classes
        # Both kinds of CPUs are one number here, which can't be compared with ``room`` before it is counted.
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
    """Counts dedicated CPUs (PCPU) as CPUs (VCPU)."""
    if dedicated := classes.pop(placed_usage.PCPU, 0):
        classes[placed_usage.VCPU] = classes.get(placed_usage.VCPU, 0) + dedicated
