"""What a server has: devices that Causeway's hosts have, too, and what the services around know of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from causeway.adopt.check.network_info import ports_in
from causeway.adopt.check.servers import Around, ServerRecords
from causeway.adopt.check.standing import Said
from causeway.adopt.nova.objects import UnknownRecord, load
from causeway.model import tpm_secrets

_RESOURCE = re.compile(r"resources[^:]*:(\w+)")
_PMEM = "CUSTOM_PMEM_NAMESPACE"
_TRUE = ("true", "1", "yes", "on", "t", "y")
_FILES = ("qcow2",)
# Extra specs and properties of images, the latter with the prefix that they have in the server's own metadata.
_TPM = ("hw:tpm_version", "image_hw_tpm_version")
_TPM_SECURITY = ("hw:tpm_secret_security", "image_hw_tpm_secret_security")
_MEMORY = ("hw:mem_encryption", "image_hw_mem_encryption")
_DISKS = ("hw:ephemeral_encryption", "image_hw_ephemeral_encryption")


def of_records(server: ServerRecords, _around: Around) -> Said:
    """Whether an import can read each record."""
    if not server.rows.extra["flavor"]:
        yield "record_missing", "Nova has no record of its flavor."
    elif server.unknown:
        yield "record_unknown", server.unknown
    if not server.rows.request_spec:
        yield "request_spec_missing", "Nova has no request spec of it."


def of_flavor(server: ServerRecords, _around: Around) -> Said:
    """Devices that a flavor or an image asks for, and that guests of Causeway's hosts don't have."""
    specs = _extra_specs(server)
    asked: Mapping[str, str] = {**server.rows.system_metadata, **specs}
    classes = {
        match[1] for name, amount in specs.items() if (match := _RESOURCE.fullmatch(name)) and str(amount) != "0"
    }
    classes |= set(_resource_classes(server))
    if "VGPU" in classes:
        yield "vgpu", "It has a virtual GPU."
    if "hw:pmem" in specs or any(name.startswith(_PMEM) for name in classes) or _is_filled(server.rows.extra["vpmems"]):
        yield "pmem", "It has persistent memory."
    if "accel:device_profile" in specs:
        yield "accelerators", f"Its flavor has the device profile {specs['accel:device_profile']}."
    if _is_true(asked, _MEMORY):
        yield "memory_encrypted", "Its memory is encrypted."
    if _is_true(asked, _DISKS):
        yield "disk_encrypted", "Its local disks are encrypted."
    yield from _of_tpm(server, asked)
    if server.shares:
        yield "shares", f"It has {server.shares} shares."


def _of_tpm(server: ServerRecords, asked: Mapping[str, str]) -> Said:
    if not any(asked.get(name) for name in _TPM):
        return
    security = tpm_secrets.security_of(server.rows.system_metadata) or next(
        (asked[name] for name in _TPM_SECURITY if asked.get(name)), "user"
    )
    key = tpm_secrets.key_of(server.rows.system_metadata)
    if key is None or security == "host":
        yield "tpm", "The state of its TPM is encrypted with a key that only libvirt has, or none is recorded."
    else:
        yield "tpm_key", f"The state of its TPM is encrypted with key {key} ({security})."


def of_disks(server: ServerRecords, around: Around) -> Said:
    """Local disks are qcow2 files, and nothing is encrypted."""
    local = [
        device
        for device in server.rows.block_devices
        if device["destination_type"] == "local" and not device["no_device"]
    ]
    if any(device["encrypted"] for device in server.rows.block_devices):
        yield "disk_encrypted", "A disk of it is encrypted."
    kind = around.images_types.get(server.host or "")
    if kind is None or kind in _FILES:
        return
    # A config drive is a file, but in a pool of Ceph.
    if local or (kind == "rbd" and server.row["config_drive"]):
        yield "image_type", f"Its host {server.host} keeps local disks as {kind} ([libvirt] images_type)."


def of_volumes(server: ServerRecords, around: Around) -> Said:
    """Volumes have attachments of their own, which Cinder knows."""
    for device in server.rows.block_devices:
        volume = device["volume_id"]
        if device["destination_type"] != "volume" or device["no_device"] or not volume:
            continue
        info = _connection(device["connection_info"])
        if (info.get("data") or {}).get("encrypted"):
            yield "volume_encrypted", f"Volume {volume} is encrypted."
        attachment = device["attachment_id"]
        if not attachment:
            yield "attachment_unknown", f"Volume {volume} has no attachment."
            continue
        if around.attachments is None:
            continue
        known = around.attachments.get(attachment)
        if known is None:
            yield "attachment_missing", f"Cinder does not know attachment {attachment} of volume {volume}."
        elif known.volume_id != volume or known.instance_uuid != server.uuid:
            yield "attachment_of_another", f"Attachment {attachment} of volume {volume} is not this server's."
        elif info and server.host and not known.is_connected:
            yield "attachment_disconnected", f"Attachment {attachment} of volume {volume} is not connected to a host."


def of_ports(server: ServerRecords, around: Around) -> Said:
    """Neutron has the ports that Nova has recorded. Where these are bound is looked at with Neutron's list."""
    if around.ports is None:
        return
    for port in ports_in(server.rows.network_info):
        if port not in around.ports:
            yield "port_missing", f"Neutron has no port {port} with a server in it."


def _extra_specs(server: ServerRecords) -> dict[str, Any]:
    try:
        flavor = (load(server.rows.extra["flavor"], "") or {}).get("cur") or {}
        return dict(flavor.get("extra_specs") or {})
    except (UnknownRecord, AttributeError, TypeError, ValueError):
        # `of_records` says so, or the record is of a kind that has none.
        return {}


def _resource_classes(server: ServerRecords) -> Iterator[str]:
    """What is recorded as given to the server, beside CPUs, memory and disks."""
    try:
        listed = load(server.rows.extra["resources"], "")
    except UnknownRecord:
        return
    for each in (listed.get("objects") if isinstance(listed, dict) else listed) or ():
        if isinstance(each, dict):
            yield str(each.get("resource_class", ""))


def _is_filled(text: str | None) -> bool:
    """Whether a list of objects has any, as Nova writes it."""
    try:
        value = load(text, "")
    except UnknownRecord:
        return True
    return bool(value.get("objects")) if isinstance(value, dict) else bool(value)


def _connection(text: str | None) -> dict[str, Any]:
    try:
        info = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return info if isinstance(info, dict) and isinstance(info.get("data") or {}, dict) else {}


def _is_true(asked: Mapping[str, str], names: tuple[str, ...]) -> bool:
    return any(str(asked.get(name, "")).lower() in _TRUE for name in names)


__all__ = ["of_disks", "of_flavor", "of_ports", "of_records", "of_volumes"]
