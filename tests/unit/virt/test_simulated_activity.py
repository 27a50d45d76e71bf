"""Simulated guests that write while they run: what they did follows from their clock, and can be verified from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from causeway import clock
from causeway.errors import GuestFailed
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.simulated import SimulatedDriver, activity, disk
from causeway.virt.simulated.habits import Habits, habits_of
from causeway.virt.simulated.hardware import SimulatedHardware

UUID = "6d9f6a0c-5f8e-4b3b-9a53-2a4b1c0d7e11"
MIB, GIB = 1 << 20, 1 << 30
FLAVOR = Flavor("1", "busy", 1, 1024, 100, extra_specs={"simulated:disk_rate": "1", "simulated:data": "10"})


class Time:
    """A clock, and who moves it."""

    def __init__(self, path: Path) -> None:
        self.clock, self._never = clock.of(str(path)), threading.Event()

    def passes(self, seconds: float) -> None:
        self.clock.wait(self._never, seconds)


@pytest.fixture
def time(tmp_path: Path) -> Time:
    return Time(tmp_path / "clock")


@pytest.fixture
def host(tmp_path: Path, time: Time) -> SimulatedDriver:
    made = new_host(tmp_path, time, "host1")
    made.spawn(spec(tmp_path))
    return made


def new_host(tmp_path: Path, time: Time, name: str, speed: float = 100.0) -> SimulatedDriver:
    hardware = SimulatedHardware(clock=time.clock, link_speed=speed * MIB)
    made = SimulatedDriver(name, tmp_path / "hosts" / name, hardware=hardware, peers_dir=tmp_path / "hosts")
    made.start()
    return made


def instance(flavor: Flavor = FLAVOR) -> Instance:
    return Instance(UUID, "project", "user", "vm1", flavor, hostname="vm1")


def spec(tmp_path: Path, flavor: Flavor = FLAVOR) -> virt.GuestSpec:
    image = tmp_path / "image"
    image.write_bytes(b"QFI\xfb" + bytes(1000))
    return virt.GuestSpec(
        instance(flavor), virt.RootDisk(virt.BaseImage(image, "raw", 1), "image1", size_gb=100), volumes=[], vifs=[]
    )


def test_a_simulated_guest_writes_as_time_passes(host: SimulatedDriver, time: Time) -> None:
    first = host.guest_written(UUID)
    time.passes(3600.0)
    written = (host.guest_written(UUID) - first) * disk.WRITE
    assert 3600 * MIB <= written < 3660 * MIB
    assert any(line.startswith("written=") for line in host.guest_memory(UUID))


@pytest.mark.parametrize("way", ["pause", "suspend", "off"])
def test_a_simulated_guest_writes_only_while_it_runs(host: SimulatedDriver, time: Time, way: str) -> None:
    time.passes(10.0)
    stop: dict[str, Callable[[str], object]] = {
        "pause": host.pause,
        "suspend": host.suspend,
        "off": lambda uuid: host.power_off(uuid, 0.0),
    }
    stop[way](UUID)
    before = host.guest_written(UUID)
    time.passes(36000.0)
    assert host.guest_written(UUID) == before
    again = virt.GuestSpec(instance(), None, volumes=[], vifs=[])
    if way == "pause":
        host.unpause(UUID)
    else:
        host.resume(again)
    # It begins where it was, and does not make up for what it missed.
    assert (host.guest_written(UUID) - before) * disk.WRITE < 60 * MIB
    assert 36000.0 <= (host.guest_stood_still(UUID) or 0.0) < 36060.0


def test_a_compute_that_was_restarted_has_a_guest_that_ran_on(
    host: SimulatedDriver, time: Time, tmp_path: Path
) -> None:
    before = host.guest_written(UUID)
    host.close()
    time.passes(100.0)
    again = new_host(tmp_path, time, "host1")
    assert (again.guest_written(UUID) - before) * disk.WRITE >= 100 * MIB


def test_a_write_that_is_lost_is_noticed(host: SimulatedDriver, time: Time) -> None:
    time.passes(1.0)
    host.guest_written(UUID)
    host.power_off(UUID, 0.0)
    path = host.files.disks(UUID) / virt.ROOT_DISK
    found = disk.load(path)
    assert found.header.written is not None
    found.header.written.blocks[7] = activity.block(UUID, 7)
    path.write_bytes(found.encode())
    with pytest.raises(GuestFailed) as failure:
        host.guest_written(UUID)
    assert "block 7 has" in str(failure.value.details)


def test_a_disk_that_is_older_than_the_memory_is_noticed(host: SimulatedDriver, time: Time) -> None:
    path = host.files.disks(UUID) / virt.ROOT_DISK
    before = path.read_bytes()
    time.passes(10.0)
    host.pause(UUID)
    path.write_bytes(before)
    with pytest.raises(GuestFailed) as failure:
        host.guest_written(UUID)
    assert "its memory knows of" in str(failure.value.details)


def test_rounds_take_as_long_as_the_disk_is_large(host: SimulatedDriver, time: Time) -> None:
    began = time.clock.time()
    first = host.begin_round(instance(), [virt.ROOT_DISK], 1, since=None, flatten=False)
    read_all(host, 1)
    took = time.clock.time() - began
    assert 10 * 1024 / 100 <= took < 10 * 1024 / 100 + 60
    host.end_round(instance(), 1)
    host.begin_round(instance(), [virt.ROOT_DISK], 2, since=first.number, flatten=False)
    with host.open_round(instance(), virt.ROOT_DISK, 2) as reader:
        sent = sum(length for _offset, length in reader.extents()) * reader.scale
    # What was written meanwhile, at 1 MiB a second.
    assert (took - 1) * MIB <= sent < (took + 60) * MIB
    assert reader.scale > 1.0


def read_all(host: SimulatedDriver, number: int) -> dict[int, bytes]:
    with host.open_round(instance(), virt.ROOT_DISK, number) as reader:
        return {offset: reader.read(offset, length) for offset, length in reader.extents()}


def test_rounds_put_together_are_the_disk(host: SimulatedDriver, time: Time) -> None:
    content: dict[int, bytes] = {}
    since = None
    for number in (1, 2, 3):
        host.begin_round(instance(), [virt.ROOT_DISK], number, since=since, flatten=False)
        content |= read_all(host, number)
        host.end_round(instance(), number)
        since = number
        time.passes(0.05)
    host.power_off(UUID, 0.0)
    with host.open_changes(instance(), virt.ROOT_DISK, 3) as reader:
        assert reader is not None
        content |= {offset: reader.read(offset, length) for offset, length in reader.extents()}
    copy = disk.decode(b"".join(content.get(at, bytes(disk.BLOCK)) for at in range(0, disk.SIZE, disk.BLOCK)))
    assert copy is not None
    assert copy.header.written == disk.load(host.files.disks(UUID) / virt.ROOT_DISK).header.written


def test_what_is_exported_is_the_disk_and_takes_its_time(host: SimulatedDriver, time: Time) -> None:
    host.power_off(UUID, 0.0)
    began = time.clock.time()
    with host.export_disk(instance(), virt.ROOT_DISK, flatten=False) as export:
        copy = disk.decode(export.path.read_bytes())
        assert copy is not None and copy.header.written is not None
        assert copy.header.written == disk.load(host.files.disks(UUID) / virt.ROOT_DISK).header.written
        assert export.size * export.scale >= 10 * GIB
    assert time.clock.time() - began >= 10 * 1024 / 100


def test_a_disk_that_came_in_part_is_damaged(host: SimulatedDriver) -> None:
    host.power_off(UUID, 0.0)
    with host.export_disk(instance(), virt.ROOT_DISK, flatten=False) as export:
        content = export.path.read_bytes()
    assert disk.decode(content) is not None
    assert disk.decode(content[:-600]) is None
    assert disk.decode(content[: -disk.BLOCK] + bytes(disk.BLOCK)) is None


def test_memory_and_disk_are_of_the_same_moment_where_it_is_woken(host: SimulatedDriver, time: Time) -> None:
    time.passes(100.0)
    began = time.clock.time()
    host.save_memory(UUID)
    # A GiB over the link, while nothing is written.
    took = time.clock.time() - began
    assert 10.24 <= took < 60.0
    before = host.guest_written(UUID)
    again = virt.GuestSpec(instance(), None, volumes=[], vifs=[])
    host.wake(again)
    time.passes(50.0)
    assert host.guest_written(UUID) == before
    host.resume_woken(UUID, is_paused=False)
    assert took + 50.0 <= (host.guest_stood_still(UUID) or 0.0) < took + 110.0
    time.passes(10.0)
    assert (host.guest_written(UUID) - before) * disk.WRITE >= 10 * MIB
    assert host.inspect(UUID).power_state is PowerState.RUNNING


def test_flavors_say_otherwise_than_hosts() -> None:
    usual = Habits(disk_rate=5.0, memory_rate=7.0)
    assert habits_of(FLAVOR, usual) == Habits(10 * GIB, MIB, 7.0)
    wrong = Flavor("1", "wrong", 1, 1024, 100, extra_specs={"simulated:disk_rate": "much"})
    with pytest.raises(GuestFailed):
        habits_of(wrong, usual)


def test_others_do_not_pay_for_it(tmp_path: Path, time: Time) -> None:
    """Guests that write nothing by themselves have nothing of this on their disks."""
    host = new_host(tmp_path, time, "host1")
    quiet = Flavor("1", "quiet", 1, 1024, 100)
    host.spawn(spec(tmp_path, quiet))
    time.passes(100.0)
    host.pause(UUID)
    assert disk.load(host.files.disks(UUID) / virt.ROOT_DISK).header.written is None
    assert [line.split("=")[0] for line in host.guest_memory(UUID)] == ["boot"]
