"""Payload objects of resources: flavors, key pairs, aggregates, groups, services, request specs, errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oslo_utils import strutils

from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate, ServerGroup, Service
from causeway.model.image import ImageMeta
from causeway.model.instance import KeyPair
from causeway.model.states import VmState

if TYPE_CHECKING:
    from causeway.scheduler.request import RequestSpec

Payload = dict[str, Any]

# The properties that ImageMetaPropsPayload knows; others are not sent.
IMAGE_PROPERTY_PREFIXES = ("hw_", "img_", "os_", "trait:")
IMAGE_PROPERTIES = frozenset({"owner_specified", "compute", "traits_required"})


def nova_object(name: str, version: str, data: dict[str, Any]) -> Payload:
    """The four keys of every object in a notification."""
    return {
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": data,
    }


def time_of(moment: datetime | None) -> str | None:
    """ISO 8601, seconds, Z. Ours are UTC without a zone."""
    if moment is None:
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def flavor(value: Flavor, projects: list[str] | None = None) -> Payload:
    """``projects``: those with access to a private flavor; None if they were not looked up."""
    return nova_object(
        "FlavorPayload",
        "1.4",
        {
            "flavorid": value.flavorid,
            "memory_mb": value.memory_mb,
            "vcpus": value.vcpus,
            "root_gb": value.root_gb,
            "ephemeral_gb": value.ephemeral_gb,
            "name": value.name,
            "swap": value.swap,
            "rxtx_factor": value.rxtx_factor,
            "vcpu_weight": 0,
            "disabled": value.disabled,
            "is_public": value.is_public,
            "extra_specs": dict(value.extra_specs),
            "projects": projects,
            "description": value.description,
        },
    )


def keypair(value: KeyPair) -> Payload:
    return nova_object(
        "KeypairPayload",
        "1.0",
        {
            "user_id": value.user_id,
            "name": value.name,
            "fingerprint": value.fingerprint,
            "public_key": value.public_key,
            "type": value.type,
        },
    )


def aggregate(value: Aggregate) -> Payload:
    return nova_object(
        "AggregatePayload",
        "1.1",
        {
            "id": value.id or None,
            "uuid": value.uuid,
            "name": value.name,
            "hosts": list(value.hosts),
            "metadata": dict(value.metadata),
        },
    )


def aggregate_cache(value: Aggregate, host: str, result: dict[str, str], index: int, total: int) -> Payload:
    """``result``: image -> its result on the host."""
    there = [image for image, end in result.items() if end in ("cached", "existing")]
    return nova_object(
        "AggregateCachePayload",
        "1.0",
        {
            "id": value.id or None,
            "uuid": value.uuid,
            "name": value.name,
            "host": host,
            "images_cached": there,
            "images_failed": [image for image in result if image not in there],
            "index": index,
            "total": total,
        },
    )


def server_group(value: ServerGroup, hosts: Iterable[str] | None = None) -> Payload:
    """``hosts``: where the members are; None if that was not looked up."""
    return nova_object(
        "ServerGroupPayload",
        "1.1",
        {
            "uuid": value.uuid,
            "name": value.name,
            "user_id": value.user_id,
            "project_id": value.project_id,
            "policies": [value.policy],
            "members": list(value.members),
            "hosts": None if hosts is None else list(hosts),
            "policy": value.policy,
            "rules": {name: str(rule) for name, rule in value.rules.items()},
        },
    )


def service(value: Service, availability_zone: str | None = None) -> Payload:
    return nova_object(
        "ServiceStatusPayload",
        "1.1",
        {
            "host": value.host,
            "binary": value.binary,
            "topic": value.topic,
            "report_count": 0,
            "disabled": value.disabled,
            "disabled_reason": value.disabled_reason,
            "availability_zone": availability_zone,
            "last_seen_up": time_of(value.last_seen_up),
            "forced_down": value.forced_down,
            "version": value.version,
            "uuid": value.uuid,
        },
    )


def exception(error: BaseException) -> Payload:
    """An error as it was raised: module, function and traceback are those of the exception object."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    function = last.tb_frame.f_code.co_name if last is not None else "unknown"
    module = last.tb_frame.f_globals.get("__name__", "unknown") if last is not None else type(error).__module__
    lines = traceback.format_exception(type(error), error, error.__traceback__, chain=False)
    return nova_object(
        "ExceptionPayload",
        "1.1",
        {
            "module_name": module,
            "function_name": function,
            "exception": type(error).__name__,
            "exception_message": strutils.mask_password(str(error)),
            "traceback": strutils.mask_password("".join(lines)),
        },
    )


def image_meta(value: ImageMeta) -> Payload:
    properties = {
        name: content
        for name, content in value.properties.items()
        if name.startswith(IMAGE_PROPERTY_PREFIXES) or name in IMAGE_PROPERTIES
    }
    return nova_object(
        "ImageMetaPayload",
        "1.0",
        {
            "id": value.id,
            "name": value.name,
            "status": value.status,
            "visibility": value.visibility,
            "protected": None,
            "checksum": value.checksum,
            "owner": value.owner,
            "size": value.size,
            "virtual_size": value.virtual_size,
            "container_format": value.container_format,
            "disk_format": value.disk_format,
            "created_at": None,
            "updated_at": None,
            "tags": None,
            "direct_url": None,
            "min_ram": value.min_ram,
            "min_disk": value.min_disk,
            "properties": nova_object("ImageMetaPropsPayload", "1.19", properties),
        },
    )


def request_spec(value: RequestSpec) -> Payload:
    destination = value.requested_destination
    group = value.server_group
    return nova_object(
        "RequestSpecPayload",
        "1.1",
        {
            "instance_uuid": value.instance_uuid,
            "project_id": value.project_id,
            "user_id": value.user_id,
            "availability_zone": value.availability_zone,
            "flavor": flavor(value.flavor),
            "force_hosts": value.force_hosts[0] if value.force_hosts else None,
            "force_nodes": None,
            "ignore_hosts": list(value.ignore_hosts) or None,
            "image_meta": None,
            "instance_group": None
            if group is None
            else nova_object(
                "ServerGroupPayload",
                "1.1",
                {
                    **dict.fromkeys(("name", "user_id", "project_id", "members", "hosts")),
                    "uuid": group.uuid,
                    "policies": [group.policy],
                    "policy": group.policy,
                    "rules": {name: str(rule) for name, rule in group.rules.items()},
                },
            ),
            "image": None if value.image is None else image_meta(value.image),
            "numa_topology": None,
            "pci_requests": None,
            "num_instances": value.num_instances,
            "requested_destination": None
            if destination is None
            else nova_object(
                "DestinationPayload",
                "1.0",
                {
                    "host": destination.host,
                    "node": destination.node,
                    "cell": None
                    if destination.cell is None
                    else nova_object(
                        "CellMappingPayload", "2.0", {"uuid": destination.cell, "name": None, "disabled": False}
                    ),
                    "aggregates": None,
                },
            ),
            "retry": None,
            "scheduler_hints": {name: list(hints) for name, hints in value.scheduler_hints.items()},
            "security_groups": [],
        },
    )


def compute_task(
    instance_uuid: str, spec: RequestSpec | None, state: VmState | str | None, reason: BaseException
) -> Payload:
    return nova_object(
        "ComputeTaskPayload",
        "1.0",
        {
            "instance_uuid": instance_uuid,
            "request_spec": None if spec is None else request_spec(spec),
            "state": None if state is None else str(state),
            "reason": exception(reason),
        },
    )
