"""A real guest whose volume is a file, and then several: snapshots are made below it, and merged again, while it runs."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.model.block_device import BlockDevice
from causeway.operations.volume_snapshots import with_file
from causeway.virt.libvirt import power
from causeway.virt.libvirt.storage import volume_files
from tests.integration.libvirt.lab_guests import Cloud, Guest, image_lines


def overlay(on: Path, name: str, base_format: str = "qcow2") -> Path:
    """As block storage makes it: it names the file below without a folder."""
    path = on.with_name(name)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", on.name, "-F", base_format, path.name]
    subprocess.run(command, check=True, cwd=on.parent)
    path.chmod(0o666)
    return path


def chain(guest: Guest, volume: BlockDevice) -> list[str]:
    def ask(hypervisor: Any) -> list[str]:
        found = volume_files.chain(power.find(hypervisor, guest.uuid), str(volume.volume_id))
        return [path.name for path in found]

    return guest.driver._connection.call("look", ask)


def lines(path: Path, tmp_path: Path) -> list[str]:
    flat = tmp_path / "flat"
    subprocess.run(["qemu-img", "convert", "-U", "-O", "raw", str(path), str(flat)], check=True)
    return image_lines(flat)


def nothing(_done: int, _total: int) -> None:
    pass


@pytest.mark.timeout(300)
def test_snapshots_are_made_and_merged_below_a_running_guest(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    volume = cloud.volume(guest)
    guest.volumes.append(volume)
    guest.spawn()
    driver, base = guest.driver, cloud.path_of(volume)
    first = overlay(base, "first", "raw")
    assert driver.snapshot_volume(guest.instance, volume, "first")
    assert driver.snapshot_volume(guest.instance, volume, "first")
    assert chain(guest, volume) == ["first", base.name]
    volume = guest.volumes[0] = replace(volume, connection_info=with_file(volume.connection_info or {}, "first"))
    written = image_lines(base)

    # The guest boots from both files, and writes to the new one alone.
    driver.reboot(guest.spec(), hard=True, timeout=0)
    guest.wait_for_boot(2)
    assert chain(guest, volume) == ["first", base.name]
    assert image_lines(base) == written
    second = overlay(first, "second")
    assert driver.snapshot_volume(guest.instance, volume, "second")
    volume = guest.volumes[0] = replace(volume, connection_info=with_file(volume.connection_info or {}, "second"))
    all_lines = lines(second, tmp_path)
    assert all_lines[: len(written)] == written
    assert len(all_lines) > len(written)

    # One that is in the middle goes into the one below; the last ones come into the guest's own file.
    driver.merge_volume_files(guest.instance, volume, "first", base.name, nothing)
    driver.merge_volume_files(guest.instance, volume, "first", base.name, nothing)
    assert chain(guest, volume) == ["second", base.name]
    first.unlink()
    assert lines(second, tmp_path) == all_lines
    driver.merge_volume_files(guest.instance, volume, None, None, nothing)
    assert chain(guest, volume) == ["second"]
    base.unlink()
    assert lines(second, tmp_path) == all_lines
    driver.reboot(guest.spec(), hard=True, timeout=0)
    guest.wait_for_boot(3)
    assert lines(second, tmp_path)[: len(all_lines)] == all_lines


def test_what_is_not_there_is_refused(cloud: Cloud) -> None:
    guest = cloud.guest()
    volume = cloud.volume(guest)
    guest.volumes.append(volume)
    guest.spawn()
    assert not guest.driver.snapshot_volume(guest.instance, volume, "nothing")
    assert chain(guest, volume) == [cloud.path_of(volume).name]
    # Nothing is below it: that was done before.
    guest.driver.merge_volume_files(guest.instance, volume, None, None, nothing)


def test_files_of_a_guest_that_is_off_are_made_and_merged(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    volume = cloud.volume(guest)
    guest.volumes.append(volume)
    guest.spawn()
    guest.driver.power_off(guest.uuid, 0)
    base = cloud.path_of(volume)
    written, first = image_lines(base), overlay(base, "first", "raw")
    assert guest.driver.snapshot_volume(guest.instance, volume, "first")
    volume = guest.volumes[0] = replace(volume, connection_info=with_file(volume.connection_info or {}, "first"))
    guest.driver.merge_volume_files(guest.instance, volume, None, None, nothing)
    base.unlink()
    assert lines(first, tmp_path) == written
