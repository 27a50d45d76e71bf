"""What a resize makes of ephemeral disks and swap, whatever the flavors are, and that a revert undoes it."""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway import errors
from causeway.model.block_device import BlockDevice, local_disk_names
from causeway.model.flavor import Flavor
from causeway.model.operations import Operation
from causeway.model.states import VmState
from causeway.moves.memory import MoveMemory
from causeway.moves.steps.local_disks import check_no_shrink, for_new_flavor, for_old_flavor

SERVER = str(uuids.UUID(int=1))
MOVE = Operation(
    id=str(uuids.UUID(int=2)), migration_uuid=str(uuids.UUID(int=3)), instance_uuid=SERVER, recipe="resize"
)


@dataclass
class Running:
    """What these functions look at of a `Run`."""

    memory: MoveMemory
    devices: list[BlockDevice]
    uuid: str = SERVER
    saga: Operation = field(default_factory=lambda: MOVE)

    def source_devices(self) -> list[BlockDevice]:
        return self.devices


def device(number: int, source: str, size: int, guest_format: str | None = None) -> BlockDevice:
    letter = chr(ord("a") + number)
    return BlockDevice(
        uuid=str(uuids.UUID(int=100 + number)),
        instance_uuid=SERVER,
        source_type=source,
        destination_type="local" if source == "blank" else "volume",
        boot_index=0 if number == 0 else -1,
        device_name=f"/dev/vd{letter}",
        volume_id=None if source == "blank" else f"volume{number}",
        volume_size=size,
        guest_format=guest_format,
    )


SIZES = st.integers(0, 4)
FLAVORS = st.builds(
    lambda root, ephemeral, swap: Flavor("f", "f", 1, 128, root, ephemeral, swap * 64), st.integers(1, 3), SIZES, SIZES
)


@st.composite
def runs(draw: st.DrawFn) -> Running:
    """A server as it is built: its root disk, ephemeral disks within what the flavor gives, swap, volumes."""
    old, new = draw(FLAVORS), draw(FLAVORS)
    devices = [device(0, "volume", 1)]
    left = old.ephemeral_gb
    while left:
        size = draw(st.integers(1, left))
        left -= size
        devices.append(device(len(devices), "blank", size))
    if old.swap:
        devices.append(device(len(devices), "blank", draw(st.integers(1, old.swap)), "swap"))
    devices += [device(len(devices) + number, "volume", 1) for number in range(draw(SIZES))]
    blank = [each for each in devices if each.is_blank_local]
    memory = MoveMemory("resize", "cell1", "host1", "node1", None, None, old, new, VmState.ACTIVE, local_devices=blank)
    return Running(memory, devices)


@given(runs())
def test_a_resize_makes_the_disks_of_the_new_flavor(run: Running) -> None:
    old, new = run.memory.old_flavor, run.memory.new_flavor
    found = for_new_flavor(run, run.devices)  # type: ignore[arg-type]
    names = [each.device_name for each in found]
    assert len(set(names)) == len(names) and all(names)
    assert [each for each in found if each.is_volume] == [each for each in run.devices if each.is_volume]
    disks = dict(local_disk_names(found))
    if new.swap != old.swap:
        assert ("disk.swap" in disks) == bool(new.swap)
        assert not new.swap or disks["disk.swap"].volume_size == new.swap
    before = dict(local_disk_names(run.devices))
    for name, present in before.items():
        # No disk that holds data goes, or becomes smaller.
        if present.is_ephemeral:
            assert (disks[name].volume_size or 0) >= (present.volume_size or 0)
    # Whoever takes the move over comes to the same.
    assert for_new_flavor(run, run.devices) == found  # type: ignore[arg-type]


@given(runs(), st.booleans())
def test_a_revert_restores_the_old_disks(run: Running, attached: bool) -> None:
    there = for_new_flavor(run, run.devices)  # type: ignore[arg-type]
    if attached:
        taken = {each.device_name for each in there}
        number = next(number for number in range(26) if f"/dev/vd{chr(ord('a') + number)}" not in taken)
        there = [*there, device(number, "volume", 1)]
    back = for_old_flavor(run, there)  # type: ignore[arg-type]
    names = [each.device_name for each in back]
    assert len(set(names)) == len(names)
    sizes = {name: each.volume_size for name, each in local_disk_names(back)}
    assert sizes == {name: each.volume_size for name, each in local_disk_names(run.devices)}
    assert [each for each in back if each.is_volume] == [each for each in there if each.is_volume]
    assert for_old_flavor(run, back) == back  # type: ignore[arg-type]


@given(runs())
def test_what_would_shrink_is_refused(run: Running) -> None:
    """The root disk is a volume here, so only ephemeral disks count."""
    old, new = run.memory.old_flavor, run.memory.new_flavor
    if new.ephemeral_gb >= old.ephemeral_gb:
        check_no_shrink(run)  # type: ignore[arg-type]
    else:
        with pytest.raises(errors.OperationFailed, match="Unable to resize disk down"):
            check_no_shrink(run)  # type: ignore[arg-type]
