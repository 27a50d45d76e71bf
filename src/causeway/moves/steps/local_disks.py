"""The ephemeral disks and swap of a server: changed for a new flavor, and restored for the old one."""

from __future__ import annotations

import dataclasses
import uuid as uuids
from typing import Any

from causeway import errors
from causeway.devices.device_records import next_device_name
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.flavor import Flavor
from causeway.moves.move_run import Run
from causeway.running.server_run import ServerRun


def check_no_shrink(run: Run) -> None:
    """The same as `refuse_smaller_disks`, for this move. Reads the block devices only if a disk may become smaller."""
    old, new = run.memory.old_flavor, run.memory.new_flavor
    if new.root_gb < old.root_gb or new.ephemeral_gb < old.ephemeral_gb:
        refuse_smaller_disks(old, new, run.source_devices())


def refuse_smaller_disks(old: Flavor, new: Flavor, devices: list[BlockDevice]) -> None:
    """Raises OperationFailed, in Nova's words, if a disk other than swap would have to become smaller.

    The root disk is checked only if it is local (bug 1825020).
    """
    root_shrinks = new.root_gb < old.root_gb and not is_volume_backed(devices)
    present = sum(device.volume_size or 0 for device in devices if device.is_ephemeral)
    if root_shrinks or new.ephemeral_gb < present:
        raise errors.OperationFailed(
            "Resize error: Unable to resize disk down.",
            details=f"root disk {old.root_gb} -> {new.root_gb} GiB, ephemeral disks {present} -> {new.ephemeral_gb} GiB",
        )


def for_new_flavor(run: Run, devices: list[BlockDevice]) -> list[BlockDevice]:
    """The same as `for_flavor`, with the old and new flavor of a move."""
    return for_flavor(run, run.memory.old_flavor, run.memory.new_flavor, devices)


def for_flavor(run: ServerRun[Any], old: Flavor, new: Flavor, devices: list[BlockDevice]) -> list[BlockDevice]:
    """Returns the block devices for a new flavor: swap resized, added or removed (bug 1552777), and more ephemeral space.

    A single ephemeral disk of the old flavor's full size gets the new flavor's full size. If the user divided the space into
    several disks, they stay as they are.
    """
    found = list(devices)
    if new.ephemeral_gb > old.ephemeral_gb:
        ephemeral = [device for device in found if device.is_ephemeral]
        if not ephemeral:
            found.append(_blank(run, found, "disk.eph0", new.ephemeral_gb, None))
        elif len(ephemeral) == 1 and ephemeral[0].volume_size == old.ephemeral_gb:
            _replace(found, ephemeral[0], new.ephemeral_gb)
    if new.swap != old.swap:
        swap = next((device for device in found if device.is_swap), None)
        if swap is None:
            found += [_blank(run, found, "disk.swap", new.swap, "swap")] if new.swap else []
        elif new.swap:
            _replace(found, swap, new.swap)
        else:
            found.remove(swap)
    return found


def for_old_flavor(run: Run, devices: list[BlockDevice]) -> list[BlockDevice]:
    """Returns the block devices with the ephemeral disks and swap that the server had before its resize."""
    before = run.memory.local_devices
    found = [device for device in devices if not device.is_blank_local]
    if not before and len(found) == len(devices):
        return devices
    for device in before:
        if any(device.device_name == other.device_name for other in found):
            # A volume that was attached since the resize has this device name.
            device = dataclasses.replace(device, device_name=next_device_name([*found, *before]))
        found.append(device)
    return found


def _replace(devices: list[BlockDevice], device: BlockDevice, size: int) -> None:
    devices[devices.index(device)] = dataclasses.replace(device, volume_size=size)


def _blank(
    run: ServerRun[Any], devices: list[BlockDevice], name: str, size: int, guest_format: str | None
) -> BlockDevice:
    return BlockDevice(
        uuid=str(uuids.uuid5(uuids.UUID(run.saga.id), name)),
        instance_uuid=run.uuid,
        source_type="blank",
        destination_type="local",
        boot_index=-1,
        device_name=next_device_name(devices),
        device_type="disk",
        volume_size=size,
        guest_format=guest_format,
        delete_on_termination=True,
    )
