"""What a server looks like, by microversion. Source: Compute API reference, "Servers", and the version history.

A `ServerView` is made once per request: it knows the version, the links' roots and, per project, what policy lets be seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from causeway.api.request import ApiRequest
from causeway.model.instance import Instance, InstanceFault
from causeway.model.states import ServerStatus
from causeway.store.api.mappings import InstanceMapping
from causeway.store.listing import AttachedVolume

SEE_INNER = "os_compute_api:os-extended-server-attributes"
SEE_EXTRA_SPECS = "os_compute_api:servers:show:flavor-extra-specs"
SEE_HOST_STATUS = "os_compute_api:servers:show:host_status"
SEE_UNKNOWN_HOST = "os_compute_api:servers:show:host_status:unknown-only"

_WITH_PROGRESS = frozenset(
    {
        ServerStatus.ACTIVE,
        ServerStatus.BUILD,
        ServerStatus.REBUILD,
        ServerStatus.RESIZE,
        ServerStatus.VERIFY_RESIZE,
        ServerStatus.MIGRATING,
    }
)
WITH_FAULT = frozenset({ServerStatus.ERROR, ServerStatus.DELETED})

# What `ServerView.detail` reads of an instance whoever asks in whichever version.
_BASE_COLUMNS = frozenset(
    {
        "uuid", "display_name", "project_id", "user_id", "metadata", "host", "image_ref", "flavor", "created_at",
        "updated_at", "network_info", "access_ip_v4", "access_ip_v6", "auto_disk_config", "vm_state", "task_state",
        "power_state", "progress", "config_drive", "key_name", "availability_zone", "launched_at", "terminated_at",
        "security_groups", "deleted",
    }
)  # fmt: skip
_INNER_COLUMNS = frozenset(
    {
        "node", "reservation_id", "launch_index", "hostname", "kernel_id", "ramdisk_id", "root_device_name", "user_data",
    }
)  # fmt: skip
_COLUMNS_SINCE: list[tuple[int, str]] = [
    (9, "locked"),
    (19, "display_description"),
    (63, "trusted_image_certificates"),
    (73, "locked_reason"),
    (90, "hostname"),
    (96, "pinned_availability_zone"),
    (98, "image_meta"),
]


@dataclass
class Sight:
    """What policy lets the caller see of a project's servers."""

    inner: bool
    extra_specs: bool
    host_status: bool
    unknown_host: bool


@dataclass
class Extras:
    """What is not in the server's own record. ``groups``, ``hints`` and ``host_status`` None: not shown."""

    volumes: list[AttachedVolume] = field(default_factory=list)
    fault: InstanceFault | None = None
    groups: list[str] | None = None
    hints: dict[str, Any] | None = None
    host_status: str | None = None


class ServerView:
    def __init__(self, request: ApiRequest) -> None:
        self.request = request
        self.minor = request.version.minor
        self._self_root = request.link_root() + "/servers/"
        self._bookmark_root = request.link_root(versioned=False) + "/"
        prefix = request.services.conf.api.glance_link_prefix
        self._image_root = prefix.rstrip("/") + "/images/" if prefix else self._bookmark_root + "images/"
        self._name_template: str = request.services.conf.instance_name_template
        self._default_zone = request.services.conf.default_availability_zone
        self._sights: dict[str, Sight] = {}

    def sight(self, project_id: str, user_id: str) -> Sight:
        found = self._sights.get(project_id)
        if found is None:
            target = {"project_id": project_id, "user_id": user_id}
            allows: Callable[[str], bool] = lambda rule: self.request.allows(rule, target)  # noqa: E731
            found = self._sights[project_id] = Sight(
                inner=allows(SEE_INNER),
                extra_specs=self.minor >= 47 and allows(SEE_EXTRA_SPECS),
                host_status=self.minor >= 16 and allows(SEE_HOST_STATUS),
                unknown_host=self.minor >= 16 and allows(SEE_UNKNOWN_HOST),
            )
        return found

    def columns(self) -> frozenset[str]:
        """The fields of the instances that `detail` will read for this caller."""
        names = set(_BASE_COLUMNS)
        names.update(column for first, column in _COLUMNS_SINCE if self.minor >= first)
        mine = self.sight(self.request.project_id, self.request.user_id)
        if mine.inner:
            names |= {"node"} if self.minor < 3 else _INNER_COLUMNS
        return frozenset(names)

    def links(self, uuid: str) -> list[dict[str, str]]:
        return [
            {"rel": "self", "href": self._self_root + uuid},
            {"rel": "bookmark", "href": f"{self._bookmark_root}servers/{uuid}"},
        ]

    def brief(self, instance: Instance) -> dict[str, Any]:
        return {"id": instance.uuid, "name": instance.display_name, "links": self.links(instance.uuid)}

    def detail(self, instance: Instance, extras: Extras, *, whole: bool = True) -> dict[str, Any]:
        """The server. ``whole`` False: the shorter form that changes answered before 2.75."""
        minor = self.minor
        status = instance.status
        sight = self.sight(instance.project_id, instance.user_id)
        server: dict[str, Any] = {
            "id": instance.uuid,
            "name": instance.display_name,
            "status": status.value,
            "tenant_id": instance.project_id,
            "user_id": instance.user_id,
            "metadata": instance.metadata,
            "hostId": host_id(instance.project_id, instance.host),
            "image": self._image(instance),
            "flavor": self._flavor(instance, sight),
            "created": _seconds(instance.created_at),
            "updated": _seconds(instance.updated_at or instance.created_at),
            "addresses": addresses(instance, extended=whole),
            "accessIPv4": instance.access_ip_v4 or "",
            "accessIPv6": instance.access_ip_v6 or "",
            "links": self.links(instance.uuid),
            "OS-DCF:diskConfig": "AUTO" if instance.auto_disk_config else "MANUAL",
        }
        if status in _WITH_PROGRESS:
            server["progress"] = instance.progress
        if extras.fault is not None and status in WITH_FAULT:
            server["fault"] = self._fault(extras.fault)
        if whole:
            self._extend(server, instance, extras, sight)
        if minor >= 9:
            server["locked"] = instance.locked
        if minor >= 73:
            server["locked_reason"] = instance.locked_reason
        if minor >= 19:
            server["description"] = instance.display_description
        if minor >= 26:
            server["tags"] = instance.tags
        if minor >= 63:
            server["trusted_image_certificates"] = instance.trusted_image_certificates
        if minor >= 71 and extras.groups is not None:
            server["server_groups"] = extras.groups
        if minor >= 90:
            server["OS-EXT-SRV-ATTR:hostname"] = instance.hostname
        if minor >= 96:
            server["pinned_availability_zone"] = instance.pinned_availability_zone
        if minor >= 100 and extras.hints is not None:
            server["scheduler_hints"] = extras.hints
        return server

    def _extend(self, server: dict[str, Any], instance: Instance, extras: Extras, sight: Sight) -> None:
        zone = instance.availability_zone or (self._default_zone if instance.host else "")
        server["OS-EXT-AZ:availability_zone"] = zone
        server["config_drive"] = "True" if instance.config_drive else ""
        server["key_name"] = instance.key_name
        server["OS-SRV-USG:launched_at"] = _micros(instance.launched_at)
        server["OS-SRV-USG:terminated_at"] = _micros(instance.terminated_at)
        if instance.security_groups:
            server["security_groups"] = [{"name": name} for name in instance.security_groups]
        server["OS-EXT-STS:task_state"] = instance.task_state
        server["OS-EXT-STS:vm_state"] = instance.vm_state.value
        server["OS-EXT-STS:power_state"] = int(instance.power_state)
        server["os-extended-volumes:volumes_attached"] = [
            {"id": volume.id}
            if self.minor < 3
            else {"id": volume.id, "delete_on_termination": volume.delete_on_termination}
            for volume in extras.volumes
        ]
        if sight.inner:
            server["OS-EXT-SRV-ATTR:host"] = instance.host
            server["OS-EXT-SRV-ATTR:instance_name"] = instance.guest_name(self._name_template)
            server["OS-EXT-SRV-ATTR:hypervisor_hostname"] = instance.node
            if self.minor >= 3:
                server["OS-EXT-SRV-ATTR:reservation_id"] = instance.reservation_id
                server["OS-EXT-SRV-ATTR:launch_index"] = instance.launch_index
                server["OS-EXT-SRV-ATTR:hostname"] = instance.hostname
                server["OS-EXT-SRV-ATTR:kernel_id"] = instance.kernel_id
                server["OS-EXT-SRV-ATTR:ramdisk_id"] = instance.ramdisk_id
                server["OS-EXT-SRV-ATTR:root_device_name"] = instance.root_device_name
                server["OS-EXT-SRV-ATTR:user_data"] = instance.user_data
        if extras.host_status is not None:
            server["host_status"] = extras.host_status

    def _image(self, instance: Instance) -> dict[str, Any] | str:
        if not instance.image_ref:
            return ""
        link = {"rel": "bookmark", "href": self._image_root + instance.image_ref}
        image: dict[str, Any] = {"id": instance.image_ref, "links": [link]}
        if self.minor >= 98:
            image["properties"] = dict(instance.image_meta.properties) if instance.image_meta else {}
        return image

    def _flavor(self, instance: Instance, sight: Sight) -> dict[str, Any]:
        flavor = instance.flavor
        if self.minor < 47:
            href = f"{self._bookmark_root}flavors/{flavor.flavorid}"
            return {"id": flavor.flavorid, "links": [{"rel": "bookmark", "href": href}]}
        shown: dict[str, Any] = {
            "vcpus": flavor.vcpus,
            "ram": flavor.memory_mb,
            "disk": flavor.root_gb,
            "ephemeral": flavor.ephemeral_gb,
            "swap": flavor.swap,
            "original_name": flavor.name,
        }
        if sight.extra_specs:
            shown["extra_specs"] = flavor.extra_specs
        return shown

    def _fault(self, fault: InstanceFault) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "code": fault.code,
            "created": _seconds(fault.created_at),
            "message": fault.message[:255],
        }
        if fault.details and (self.request.context.is_admin or fault.code != 500):
            shown["details"] = fault.details
        return shown

    def partial(self, mapping: InstanceMapping, *, detailed: bool) -> dict[str, Any]:
        """What can be said in a list of a server whose cell is down (2.69)."""
        server: dict[str, Any] = {
            "id": mapping.instance_uuid,
            "status": "UNKNOWN",
            "links": self.links(mapping.instance_uuid),
        }
        if detailed:
            server["tenant_id"] = mapping.project_id
            server["created"] = _seconds(mapping.created_at)
        return server


@lru_cache(4096)
def host_id(project_id: str, host: str | None) -> str:
    """Names a host to a project without telling which one it is."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest() if host else ""


def addresses(instance: Instance, *, extended: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Network label -> addresses; ``extended``: with their type and the port's MAC."""
    found: dict[str, list[dict[str, Any]]] = {}
    for vif in instance.network_info:
        listed = found.setdefault(vif.network_label, [])
        for ip in vif.fixed_ips:
            for address, kind in [(ip.address, "fixed"), *((floating, "floating") for floating in ip.floating_ips)]:
                entry: dict[str, Any] = {"version": ip.version if kind == "fixed" else 4, "addr": address}
                if extended:
                    entry["OS-EXT-IPS:type"] = kind
                    entry["OS-EXT-IPS-MAC:mac_addr"] = vif.address
                listed.append(entry)
    return found


def _seconds(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="seconds") + "Z"


def _micros(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="microseconds")
