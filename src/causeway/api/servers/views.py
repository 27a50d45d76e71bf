"""What a server looks like, by microversion. Source: Compute API reference, "Servers", and the version history.

A `ServerView` is made once per request. It knows the version, the links' roots and, per project, what policy lets the caller
see. It shows the columns that were read of a row (`causeway.store.listed`): stored JSON goes into the answer unchanged where it
is shown as it is, and a flavor or image that many servers have is made once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from causeway.api.request import ApiRequest
from causeway.model.instance import InstanceFault, name_guest
from causeway.model.states import PowerState, ServerStatus, VmState
from causeway.store.api.mappings import InstanceMapping
from causeway.store.listed import Listed, ShownVif

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
# From this minor version on a server's group is shown.
WITH_GROUPS = 71
_NULL = "null"

# What `ServerView.detail` reads of an instance for every caller in every version.
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
        "node", "guest_name", "reservation_id", "launch_index", "hostname", "kernel_id", "ramdisk_id", "root_device_name",
        "user_data",
    }
)  # fmt: skip
_INNER_OF_ALL_VERSIONS = frozenset({"node", "guest_name"})
_INNER_SHOWN = sorted(_INNER_COLUMNS - _INNER_OF_ALL_VERSIONS)
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
    """What is not in the server's own record. ``groups``, ``hints`` and ``host_status`` are not shown if they are None."""

    fault: InstanceFault | None = None
    groups: list[str] | None = None
    hints: dict[str, Any] | None = None
    host_status: str | None = None


class _Flavor(msgspec.Struct):
    """What is shown of a `causeway.model.flavor.Flavor`."""

    flavorid: str
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int = 0
    swap: int = 0
    extra_specs: dict[str, str] = {}


class _Image(msgspec.Struct):
    """What is shown of a `causeway.model.image.ImageMeta`."""

    properties: dict[str, Any] = {}


_decode_flavor = msgspec.json.Decoder(_Flavor).decode
_decode_image = msgspec.json.Decoder(_Image | None).decode
_decode_names = msgspec.json.Decoder(list[str]).decode


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
        self._flavors: dict[tuple[str, bool], dict[str, Any]] = {}
        self._images: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._security_groups: dict[str, list[dict[str, str]]] = {}

    def sight(self, server: Listed) -> Sight:
        """What the caller may see of the server, and of all others of its project."""
        return self._sight(server.values["project_id"], server.values["user_id"])

    def _sight(self, project_id: str, user_id: str) -> Sight:
        found = self._sights.get(project_id)
        if found is None:
            target = {"project_id": project_id, "user_id": user_id}

            def allows(rule: str) -> bool:
                return self.request.allows(rule, target)

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
        mine = self._sight(self.request.project_id, self.request.user_id)
        if mine.inner:
            names |= _INNER_OF_ALL_VERSIONS if self.minor < 3 else _INNER_COLUMNS
        return frozenset(names)

    def links(self, uuid: str) -> list[dict[str, str]]:
        return [
            {"rel": "self", "href": self._self_root + uuid},
            {"rel": "bookmark", "href": f"{self._bookmark_root}servers/{uuid}"},
        ]

    def brief(self, server: Listed) -> dict[str, Any]:
        return {"id": server.uuid, "name": server.values["display_name"], "links": self.links(server.uuid)}

    def detail(self, server: Listed, extras: Extras, *, whole: bool = True) -> dict[str, Any]:
        """The server. ``whole`` False: the shorter form that changes answered before 2.75."""
        minor, row = self.minor, server.values
        uuid, project_id, host = row["uuid"], row["project_id"], row["host"]
        status = server.status
        sight = self.sight(server)
        vifs = server.vifs
        shown: dict[str, Any] = {
            "id": uuid,
            "name": row["display_name"],
            "status": status.value,
            "tenant_id": project_id,
            "user_id": row["user_id"],
            "metadata": msgspec.Raw(row["metadata"]),
            "hostId": host_id(project_id, host),
            "image": self._image(row),
            "flavor": self._flavor(row["flavor"], sight),
            "created": _seconds(row["created_at"]),
            "updated": _seconds(row["updated_at"] or row["created_at"]),
            "addresses": addresses(vifs, extended=whole),
            "accessIPv4": row["access_ip_v4"] or "",
            "accessIPv6": row["access_ip_v6"] or "",
            "links": self.links(uuid),
            "OS-DCF:diskConfig": "AUTO" if row["auto_disk_config"] else "MANUAL",
        }
        if status in _WITH_PROGRESS:
            shown["progress"] = row["progress"]
        if extras.fault is not None and status in WITH_FAULT:
            shown["fault"] = self._fault(extras.fault)
        if whole:
            self._extend(shown, server, vifs, extras, sight)
        if minor >= 9:
            shown["locked"] = row["locked"]
        if minor >= 73:
            shown["locked_reason"] = row["locked_reason"]
        if minor >= 19:
            shown["description"] = row["display_description"]
        if minor >= 26:
            shown["tags"] = server.tags
        if minor >= 63:
            shown["trusted_image_certificates"] = msgspec.Raw(row["trusted_image_certificates"] or _NULL)
        if minor >= WITH_GROUPS and extras.groups is not None:
            shown["server_groups"] = extras.groups
        if minor >= 90:
            shown["OS-EXT-SRV-ATTR:hostname"] = row["hostname"]
        if minor >= 96:
            shown["pinned_availability_zone"] = row["pinned_availability_zone"]
        if minor >= 100 and extras.hints is not None:
            shown["scheduler_hints"] = extras.hints
        return shown

    def _extend(
        self, shown: dict[str, Any], server: Listed, vifs: list[ShownVif], extras: Extras, sight: Sight
    ) -> None:
        row = server.values
        shown["OS-EXT-AZ:availability_zone"] = row["availability_zone"] or (self._default_zone if row["host"] else "")
        shown["config_drive"] = "True" if row["config_drive"] else ""
        shown["key_name"] = row["key_name"]
        shown["OS-SRV-USG:launched_at"] = _micros(row["launched_at"])
        shown["OS-SRV-USG:terminated_at"] = _micros(row["terminated_at"])
        has_no_ports_yet = not vifs and row["vm_state"] == VmState.BUILDING
        security_groups = self._named(row["security_groups"]) if has_no_ports_yet else _groups_of(vifs)
        if security_groups:
            shown["security_groups"] = security_groups
        shown["OS-EXT-STS:task_state"] = row["task_state"]
        shown["OS-EXT-STS:vm_state"] = row["vm_state"]
        shown["OS-EXT-STS:power_state"] = row["power_state"]
        shown["os-extended-volumes:volumes_attached"] = [
            {"id": volume.id}
            if self.minor < 3
            else {"id": volume.id, "delete_on_termination": volume.delete_on_termination}
            for volume in server.volumes
        ]
        if sight.inner:
            shown["OS-EXT-SRV-ATTR:host"] = row["host"]
            shown["OS-EXT-SRV-ATTR:instance_name"] = row["guest_name"] or name_guest(
                self._name_template, row["uuid"], row["project_id"], row["user_id"], row.get("hostname", "")
            )
            shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] = row["node"]
            if self.minor >= 3:
                for name in _INNER_SHOWN:
                    shown[f"OS-EXT-SRV-ATTR:{name}"] = row[name]
        if extras.host_status is not None:
            shown["host_status"] = extras.host_status

    def _named(self, text: str) -> list[dict[str, str]]:
        """The security groups that were asked for, from their JSON."""
        found = self._security_groups.get(text)
        if found is None:
            found = self._security_groups[text] = [{"name": name} for name in _decode_names(text)]
        return found

    def _image(self, row: dict[str, Any]) -> dict[str, Any] | str:
        image_ref = row["image_ref"]
        if not image_ref:
            return ""
        meta = row["image_meta"] if self.minor >= 98 else None
        found = self._images.get((image_ref, meta))
        if found is None:
            found = self._image_link(image_ref)
            if self.minor >= 98:
                image = _decode_image(meta or _NULL)
                found["properties"] = image.properties if image else {}
            self._images[(image_ref, meta)] = found
        return found

    def _image_link(self, image_ref: str) -> dict[str, Any]:
        return {"id": image_ref, "links": [{"rel": "bookmark", "href": self._image_root + image_ref}]}

    def _flavor(self, text: str, sight: Sight) -> dict[str, Any]:
        found = self._flavors.get((text, sight.extra_specs))
        if found is None:
            found = self._flavors[(text, sight.extra_specs)] = self._show_flavor(_decode_flavor(text), sight)
        return found

    def _show_flavor(self, flavor: _Flavor, sight: Sight) -> dict[str, Any]:
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
        """What a list shows of a server whose cell is down (2.69)."""
        server: dict[str, Any] = {
            "id": mapping.instance_uuid,
            "status": "UNKNOWN",
            "links": self.links(mapping.instance_uuid),
        }
        if detailed:
            server["tenant_id"] = mapping.project_id
            server["created"] = _seconds(mapping.created_at)
        return server

    def of_down_cell(self, mapping: InstanceMapping, spec: dict[str, Any]) -> dict[str, Any]:
        """What is shown of one server whose cell is down (2.69), including what was asked for when it was made."""
        image = (spec.get("image") or {}).get("id")
        sight = self._sight(mapping.project_id, mapping.user_id)
        return self.partial(mapping, detailed=True) | {
            "user_id": mapping.user_id,
            "image": self._image_link(image) if image else "",
            "flavor": self._show_flavor(msgspec.convert(spec["flavor"], _Flavor), sight),
            "OS-EXT-AZ:availability_zone": spec.get("availability_zone") or "UNKNOWN",
            "OS-EXT-STS:power_state": PowerState.NOSTATE.value,
        }


@lru_cache(4096)
def host_id(project_id: str, host: str | None) -> str:
    """An id for a host that differs by project and does not reveal the host's name; empty without a host."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest() if host else ""


def _groups_of(vifs: list[ShownVif]) -> list[dict[str, str]]:
    """The groups port by port: one that two ports have is listed twice, as in Nova."""
    return [{"name": name} for vif in vifs for name in vif.security_groups]


def addresses(vifs: Iterable[ShownVif], *, extended: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Network label -> addresses; ``extended``: with their type and the port's MAC."""
    found: dict[str, list[dict[str, Any]]] = {}
    for vif in vifs:
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
