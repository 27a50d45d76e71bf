"""The columns of Nova's rows of a server, as its record here says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from causeway.adopt.hand_back.json_text import json_text
from causeway.adopt.records import images
from causeway.model.block_device import BlockDevice
from causeway.model.instance import ActionEvent, Instance, InstanceAction, InstanceFault
from causeway.model.migration import Migration
from causeway.model.pci import PciDevice, PciDeviceStatus
from causeway.model.soft_deleted import SINCE
from causeway.model.states import VmState

Row = dict[str, Any]
_SAME = (
    "uuid", "project_id", "user_id", "display_name", "display_description", "hostname", "reservation_id", "launch_index", "host",
    "node", "availability_zone", "progress", "image_ref", "kernel_id", "ramdisk_id", "key_name", "user_data",
    "root_device_name", "access_ip_v4", "access_ip_v6", "locked_by",
)  # fmt: skip
_SAME_OF_DEVICE = (
    "uuid", "instance_uuid", "source_type", "destination_type", "boot_index", "device_name", "volume_id", "volume_size",
    "volume_type", "snapshot_id", "image_id", "attachment_id", "tag", "disk_bus", "device_type", "guest_format",
)  # fmt: skip
_SAME_OF_MIGRATION = (
    "uuid", "instance_uuid", "migration_type", "source_compute", "source_node", "dest_compute", "dest_node", "dest_host",
    "cross_cell_move", "hidden", "user_id", "project_id",
)  # fmt: skip
_BYTES = ("memory_total", "memory_processed", "memory_remaining", "disk_total", "disk_processed", "disk_remaining")
# What the columns of texts take.
_MOST_CHARACTERS = 255
# Of a row that is in use, whether it was deleted before or not.
LIVING: Row = {"deleted": 0, "deleted_at": None}


def seconds(time: datetime | None) -> datetime | None:
    """Nova's databases keep no parts of seconds, and round them."""
    return None if time is None else time.replace(microsecond=0)


def instance_row(instance: Instance, compute_id: int | None) -> Row:
    """``compute_id``: Nova's number of the server's compute node."""
    flavor, since = instance.flavor, instance.system_metadata.get(SINCE)
    is_soft_deleted = instance.vm_state is VmState.SOFT_DELETED and since is not None
    return {name: getattr(instance, name) for name in _SAME} | {
        "vm_state": instance.vm_state.value,
        "task_state": None,
        "power_state": int(instance.power_state),
        "config_drive": "True" if instance.config_drive else "",
        "auto_disk_config": instance.auto_disk_config,
        "locked": instance.locked,
        "memory_mb": flavor.memory_mb,
        "vcpus": flavor.vcpus,
        "root_gb": flavor.root_gb,
        "ephemeral_gb": flavor.ephemeral_gb,
        "instance_type_id": flavor.id,
        "key_data": next((each.public_key for each in instance.keypairs if each.name == instance.key_name), None),
        "compute_id": compute_id,
        "hidden": False,
        "cleaned": 0,
        "deleted": 0,
        # Nova reckons from it when it is to be deleted for good.
        "deleted_at": seconds(datetime.fromisoformat(since)) if is_soft_deleted and since is not None else None,
        "created_at": seconds(instance.created_at),
        "updated_at": seconds(instance.updated_at),
        "launched_at": seconds(instance.launched_at),
        "terminated_at": seconds(instance.terminated_at),
    }


def system_metadata(instance: Instance) -> dict[str, str]:
    """With what Nova keeps there of the image, which a rebuild may have changed. Nova cuts values, too."""
    image = instance.image_meta
    found = dict(instance.system_metadata)
    if image is not None:
        found |= {f"image_{name}": str(value) for name, value in image.properties.items() if value is not None}
        known = {
            "min_disk": image.min_disk,
            "min_ram": image.min_ram,
            "disk_format": image.disk_format,
            "container_format": image.container_format,
        }
        found |= {f"image_{name}": str(value) for name, value in known.items() if value is not None}
        found.setdefault(images.BASE_IMAGE, instance.image_ref)
    if instance.locked_reason is not None:
        found["locked_reason"] = instance.locked_reason
    if instance.old_vm_state is not None:
        found["old_vm_state"] = instance.old_vm_state.value
    return {name: value[:_MOST_CHARACTERS] for name, value in found.items() if len(name) <= _MOST_CHARACTERS}


def device_row(device: BlockDevice) -> Row:
    info = device.connection_info
    return {name: getattr(device, name) for name in _SAME_OF_DEVICE} | {
        "delete_on_termination": device.delete_on_termination,
        "connection_info": None if info is None else json_text(info),
        "no_device": False,
        "encrypted": False,
        "created_at": seconds(device.created_at),
        **LIVING,
    }


def migration_row(migration: Migration) -> Row:
    return {name: getattr(migration, name) for name in _SAME_OF_MIGRATION} | {
        "status": migration.status.value,
        "old_instance_type_id": migration.old_flavor_id,
        "new_instance_type_id": migration.new_flavor_id,
        **{name: getattr(migration, f"{name}_bytes") for name in _BYTES},
        "created_at": seconds(migration.created_at),
        "updated_at": seconds(migration.updated_at),
        **LIVING,
    }


def action_row(action: InstanceAction) -> Row:
    return {
        "action": action.action,
        "instance_uuid": action.instance_uuid,
        "request_id": action.request_id,
        "user_id": action.user_id,
        "project_id": action.project_id,
        "start_time": seconds(action.start_time),
        "finish_time": seconds(action.finish_time),
        "message": action.message,
        "created_at": seconds(action.start_time),
        "updated_at": seconds(action.updated_at),
        "deleted": 0,
    }


def event_row(event: ActionEvent, action_id: int) -> Row:
    return {
        "action_id": action_id,
        "event": event.event,
        "start_time": seconds(event.start_time),
        "finish_time": seconds(event.finish_time),
        "result": event.result,
        "traceback": event.traceback,
        "host": event.host,
        "details": event.details,
        "created_at": seconds(event.start_time),
        "deleted": 0,
    }


def fault_row(fault: InstanceFault, uuid: str) -> Row:
    return {
        "instance_uuid": uuid,
        "code": fault.code,
        "message": fault.message[:_MOST_CHARACTERS],
        "details": fault.details,
        "host": fault.host,
        "created_at": seconds(fault.created_at),
        "deleted": 0,
    }


def held_devices(devices: Iterable[PciDevice]) -> Mapping[str, Row]:
    """address -> the columns that say whose the device is."""
    return {
        each.address: {
            "status": PciDeviceStatus.ALLOCATED.value,
            "instance_uuid": each.instance_uuid,
            "request_id": each.request_id,
        }
        for each in devices
    }
