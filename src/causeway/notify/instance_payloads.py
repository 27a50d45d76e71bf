"""Payload objects of servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import PowerState, TaskState, VmState
from causeway.notify import payloads
from causeway.notify.payloads import Payload, nova_object, time_of

# The API shows numbers, notifications words. A guest without a state is about to be made.
POWER_STATES = {
    PowerState.NOSTATE: "pending",
    PowerState.RUNNING: "running",
    PowerState.PAUSED: "paused",
    PowerState.SHUTDOWN: "shutdown",
    PowerState.CRASHED: "crashed",
    PowerState.SUSPENDED: "suspended",
}


@dataclass(frozen=True)
class Extra:
    """What the payload of one action has beyond InstanceActionPayload's fields."""

    name: str = "InstanceActionPayload"
    version: str = "1.9"
    fields: dict[str, Any] = field(default_factory=dict)


def instance_fields(
    context: RequestContext, instance: Instance, block_devices: Iterable[BlockDevice] | None
) -> dict[str, Any]:
    """The fields of InstancePayload. ``block_devices``: None if they were not looked up."""
    # A periodic task's request id belongs to no user's request, and is left out, as in Nova.
    by_user = context.user_id is not None and context.project_id is not None
    return {
        "uuid": instance.uuid,
        "user_id": instance.user_id,
        "tenant_id": instance.project_id,
        "reservation_id": instance.reservation_id,
        "display_name": instance.display_name,
        "display_description": instance.display_description,
        "host_name": instance.hostname,
        "host": instance.host,
        "node": instance.node,
        "os_type": instance.system_metadata.get("image_os_type"),
        "architecture": instance.system_metadata.get("image_architecture"),
        "availability_zone": instance.availability_zone,
        "flavor": payloads.flavor(instance.flavor),
        "image_uuid": instance.image_ref,
        "key_name": instance.key_name,
        "kernel_id": instance.kernel_id,
        "ramdisk_id": instance.ramdisk_id,
        "created_at": time_of(instance.created_at),
        "launched_at": time_of(instance.launched_at),
        "terminated_at": time_of(instance.terminated_at),
        "deleted_at": time_of(instance.deleted_at),
        "updated_at": time_of(instance.updated_at),
        "state": str(instance.vm_state),
        "power_state": POWER_STATES[instance.power_state],
        "task_state": _text(instance.task_state),
        "progress": instance.progress,
        "ip_addresses": [ip for vif in instance.network_info for ip in ip_addresses(vif)],
        "block_devices": None
        if block_devices is None
        # As in Nova, not volumes that are still to be made.
        else [block_device(each) for each in block_devices if each.is_volume and each.volume_id is not None],
        "metadata": dict(instance.metadata),
        "locked": instance.locked,
        "auto_disk_config": "AUTO" if instance.auto_disk_config else "MANUAL",
        "request_id": context.request_id if by_user else None,
        "action_initiator_user": context.user_id,
        "action_initiator_project": context.project_id,
        "locked_reason": instance.locked_reason,
        "shares": None,
    }


def ip_addresses(vif: Vif) -> list[Payload]:
    return [
        nova_object(
            "IpPayload",
            "1.0",
            {
                "label": vif.network_label,
                "mac": vif.address,
                "meta": {},
                "port_uuid": vif.id,
                "version": ip.version,
                "address": ip.address,
                "device_name": vif.devname,
            },
        )
        for ip in vif.fixed_ips
    ]


def block_device(value: BlockDevice) -> Payload:
    return nova_object(
        "BlockDevicePayload",
        "1.0",
        {
            "device_name": value.device_name,
            "boot_index": value.boot_index,
            "delete_on_termination": value.delete_on_termination,
            "volume_id": value.volume_id,
            "tag": value.tag,
        },
    )


def create_extra(instance: Instance, name_template: str) -> Extra:
    return Extra(
        "InstanceCreatePayload",
        "1.13",
        {
            "keypairs": [payloads.keypair(each) for each in instance.keypairs],
            "tags": list(instance.tags),
            "trusted_image_certificates": instance.trusted_image_certificates,
            "instance_name": instance.name_on_hypervisor(name_template),
        },
    )


def resize_prep_extra(new_flavor: Flavor | None) -> Extra:
    shown_flavor = None if new_flavor is None else payloads.flavor(new_flavor)
    return Extra("InstanceActionResizePrepPayload", "1.4", {"new_flavor": shown_flavor})


def volume_extra(volume_id: str) -> Extra:
    return Extra("InstanceActionVolumePayload", "1.7", {"volume_id": volume_id})


def volume_swap_extra(old_volume_id: str, new_volume_id: str) -> Extra:
    fields = {"old_volume_id": old_volume_id, "new_volume_id": new_volume_id}
    return Extra("InstanceActionVolumeSwapPayload", "1.9", fields)


def snapshot_extra(image_id: str) -> Extra:
    return Extra("InstanceActionSnapshotPayload", "1.10", {"snapshot_image_id": image_id})


def rebuild_extra(instance: Instance) -> Extra:
    fields = {"trusted_image_certificates": instance.trusted_image_certificates}
    return Extra("InstanceActionRebuildPayload", "1.10", fields)


def rescue_extra(image_ref: str | None) -> Extra:
    return Extra("InstanceActionRescuePayload", "1.4", {"rescue_image_ref": image_ref})


def action(
    context: RequestContext,
    instance: Instance,
    fault: BaseException | None,
    block_devices: Iterable[BlockDevice] | None,
    extra: Extra,
) -> Payload:
    """InstanceActionPayload, or the payload that ``extra`` names, with its fields."""
    data = {
        **instance_fields(context, instance, block_devices),
        "fault": None if fault is None else payloads.exception(fault),
        **extra.fields,
    }
    return nova_object(extra.name, extra.version, data)


def audit_period(beginning: datetime, ending: datetime) -> Payload:
    return nova_object(
        "AuditPeriodPayload",
        "1.0",
        {"audit_period_beginning": time_of(beginning), "audit_period_ending": time_of(ending)},
    )


def exists(
    context: RequestContext, instance: Instance, block_devices: Iterable[BlockDevice] | None, period: Payload
) -> Payload:
    data = {**instance_fields(context, instance, block_devices), "audit_period": period}
    return nova_object("InstanceExistsPayload", "2.1", data)


def update(
    context: RequestContext,
    instance: Instance,
    block_devices: Iterable[BlockDevice] | None,
    period: Payload,
    old_vm_state: VmState | None,
    old_task_state: TaskState | None,
    old_display_name: str | None,
) -> Payload:
    change = {
        "old_state": _text(old_vm_state),
        "state": str(instance.vm_state),
        "old_task_state": _text(old_task_state),
        "new_task_state": _text(instance.task_state),
    }
    data = {
        **instance_fields(context, instance, block_devices),
        "state_update": nova_object("InstanceStateUpdatePayload", "1.0", change),
        "audit_period": period,
        "old_display_name": old_display_name,
        "tags": list(instance.tags),
    }
    return nova_object("InstanceUpdatePayload", "2.1", data)


def _text(value: VmState | TaskState | None) -> str | None:
    return None if value is None else str(value)
