"""From a request to the query for allocation candidates: resources, traits, aggregates, trees.

The amounts and extra specs are those of the Compute API's administration guide ("Flavors", "Extra Specs") and of
Placement's allocation candidates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import os_traits

from causeway import errors
from causeway.clients.placement.types import CandidatesRequest, RequestGroup
from causeway.hardware import firmware
from causeway.hardware.numa_request import dedicated_cpus
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate
from causeway.model.image import ImageMeta
from causeway.scheduler.request import RequestSpec

DISABLED = "COMPUTE_STATUS_DISABLED"
TENANT_KEY = "filter_tenant_id"
_MB_PER_GB = 1024
_SPEC = re.compile(r"^(?P<kind>resources|trait)(?P<suffix>[A-Za-z0-9_-]{0,64}):(?P<name>\S+)$")
# Property of an image -> how the names of its traits begin.
_TRAITS_OF_PROPERTIES = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU_MODEL",
}
# Hints for which hosts beyond the first candidates may be needed.
_UNLIMITED_HINTS = frozenset({"group", "same_host", "different_host"})


@dataclass(frozen=True)
class Prefilters:
    """The options of [scheduler] that shape the query."""

    max_placement_results: int = 1000
    limit_tenants: bool = False
    aggregate_required_for_tenants: bool = False
    image_type_support: bool = False
    image_metadata: bool = False
    isolated_aggregates: bool = False
    default_availability_zone: str = "nova"


def flavor_groups(flavor: Flavor, *, is_volume_backed: bool, image: ImageMeta | None = None) -> dict[str, RequestGroup]:
    """The request groups of a flavor by suffix; "" is always there. The image may ask for dedicated CPUs."""
    disk = (0 if is_volume_backed else flavor.root_gb) + flavor.ephemeral_gb + -(-flavor.swap // _MB_PER_GB)
    main = RequestGroup(resources={"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": disk})
    groups = {"": main}
    if (dedicated := dedicated_cpus(flavor, image)) > 0:
        main.resources["VCPU"] -= dedicated
        main.resources["PCPU"] = dedicated
    for key, value in sorted(flavor.extra_specs.items()):
        match = _SPEC.match(key)
        if match is None:
            continue
        group = groups.setdefault(match["suffix"], RequestGroup(suffix=match["suffix"]))
        if match["kind"] == "resources":
            group.resources[match["name"]] = _amount(key, value)
        elif value == "required":
            group.required.add(match["name"])
        elif value == "forbidden":
            group.forbidden.add(match["name"])
    for group in groups.values():
        group.resources = {name: amount for name, amount in group.resources.items() if amount}
    return {suffix: group for suffix, group in groups.items() if group.resources or not suffix}


def disk_gb_of(flavor: Flavor, *, is_volume_backed: bool, image: ImageMeta | None = None) -> int:
    """How much of Placement's DISK_GB a server takes."""
    return flavor_groups(flavor, is_volume_backed=is_volume_backed, image=image)[""].resources.get("DISK_GB", 0)


def candidates_request(
    spec: RequestSpec, aggregates: list[Aggregate], prefilters: Prefilters, *, in_tree: str | None = None
) -> CandidatesRequest:
    """The query for a request. ``in_tree``: the provider of the one node that the request wants.

    Raises NoValidHost if aggregates or the flavor rule out all hosts.
    """
    groups = flavor_groups(spec.flavor, is_volume_backed=spec.is_volume_backed, image=spec.image)
    main = groups[""]
    main.required |= _image_traits(spec) | firmware.required_traits(firmware.firmware_of(spec.flavor, spec.image))
    main.member_of = _required_aggregates(spec, aggregates, prefilters)
    main.forbidden_aggregates = _forbidden_aggregates(spec, aggregates, prefilters, groups)
    main.in_tree = in_tree
    request = CandidatesRequest(
        groups=[group for group in groups.values() if group.resources] + spec.requested_resources,
        root_forbidden={DISABLED},
        same_subtree=spec.same_subtree,
    )
    if prefilters.image_type_support and spec.image is not None and spec.image.disk_format:
        request.root_required.add(f"COMPUTE_IMAGE_TYPE_{spec.image.disk_format.upper()}")
    if prefilters.image_metadata and spec.image is not None:
        request.root_required |= image_metadata_traits(spec.image)
    suffixed = [suffix for suffix in groups if suffix]
    request.group_policy = spec.flavor.extra_specs.get("group_policy")
    if request.group_policy is None and len(suffixed) + len(spec.requested_resources) > 1:
        if len(suffixed) > 1:
            raise errors.NoValidHost(
                "No valid host was found. The flavor asks for several groups of resources without saying how they may be"
                " placed: it needs the extra spec group_policy (none or isolate)."
            )
        request.group_policy = "none"
    if in_tree is None and not _UNLIMITED_HINTS & spec.scheduler_hints.keys() and spec.server_group is None:
        request.limit = prefilters.max_placement_results
    return request


def image_metadata_traits(image: ImageMeta) -> set[str]:
    """The traits that a host needs for the properties of an image; none if a value of a property has no trait."""
    wanted = {
        f"{prefix}_{str(image.properties[name]).replace('-', '_').upper()}"
        for name, prefix in _TRAITS_OF_PROPERTIES.items()
        if image.properties.get(name)
    }
    # As in Nova: a value without a trait is an error of the image, or needs newer traits.
    return wanted if all(hasattr(os_traits, name) for name in wanted) else set()


def _amount(key: str, value: str) -> int:
    if not value.isdecimal():
        raise errors.NoValidHost(f"No valid host was found. The flavor's extra spec {key}={value} is not an amount.")
    return int(value)


def _image_traits(spec: RequestSpec) -> set[str]:
    if spec.image is None:
        return set()
    properties = spec.image.properties
    named = {key.removeprefix("trait:") for key in properties if key.startswith("trait:")}
    return named | set(properties.get("traits_required", []))


def _required_aggregates(spec: RequestSpec, aggregates: list[Aggregate], prefilters: Prefilters) -> list[set[str]]:
    wanted: list[set[str]] = []
    zone = spec.availability_zone
    if zone and zone != prefilters.default_availability_zone:
        in_zone = {aggregate.uuid for aggregate in aggregates if aggregate.availability_zone == zone}
        if not in_zone:
            raise errors.NoValidHost(f"No valid host was found. No host is in availability zone {zone}.")
        wanted.append(in_zone)
    if prefilters.limit_tenants:
        for_tenant = {a.uuid for a in aggregates if spec.project_id in tenants_of(a)}
        if for_tenant:
            wanted.append(for_tenant)
        elif prefilters.aggregate_required_for_tenants:
            raise errors.NoValidHost("No valid host was found. No host aggregate is meant for this project.")
    return wanted


def _forbidden_aggregates(
    spec: RequestSpec, aggregates: list[Aggregate], prefilters: Prefilters, groups: dict[str, RequestGroup]
) -> set[str]:
    forbidden: set[str] = set()
    default = prefilters.default_availability_zone
    if spec.availability_zone == default:
        # The default zone is where no other zone is, so it needs no aggregate, though one may have its name.
        forbidden |= {
            aggregate.uuid for aggregate in aggregates if aggregate.availability_zone not in (None, "", default)
        }
    if prefilters.isolated_aggregates:
        required = set().union(*(group.required for group in groups.values()))
        for aggregate in aggregates:
            keys = [
                key for key, value in aggregate.metadata.items() if key.startswith("trait:") and value == "required"
            ]
            if not {key.removeprefix("trait:") for key in keys} <= required:
                forbidden.add(aggregate.uuid)
    return forbidden


def tenants_of(aggregate: Aggregate) -> set[str]:
    """The projects that an aggregate is reserved for: all values of keys that begin with filter_tenant_id."""
    values = [value for key, value in aggregate.metadata.items() if key.startswith(TENANT_KEY)]
    return {part.strip() for value in values for part in value.split(",") if part.strip()}
