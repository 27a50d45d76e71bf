"""A guest's disks on their way from host to host, and back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from causeway.errors import GuestFailed, ImageRefused
from causeway.model.states import PowerState
from causeway.virt.driver import RootDisk
from tests.integration.libvirt.lab_guests import Cloud, Guest, Net, image_lines


def stop_and_stash(guest: Guest, directory: Path, *, flatten: bool = False) -> RootDisk:
    """What the source host does of a resize; returns the disk as the target receives it."""
    guest.driver.power_off(guest.uuid, timeout=60)
    with guest.driver.export_disk(guest.instance, "disk", flatten=flatten) as export:
        received = directory / "received"
        shutil.copy(export.path, received)
        assert export.size == received.stat().st_size
        assert export.base_image_id == (None if flatten else "the-image")
    assert not export.path.exists()
    guest.driver.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=False)
    guest.driver.stash_disks(guest.uuid)
    return RootDisk(None if flatten else guest.base, export.base_image_id, snapshot=received, size_gb=2)


@pytest.mark.parametrize("flatten", [False, True])
def test_guest_continues_at_another_host_with_its_disk(cloud: Cloud, tmp_path: Path, flatten: bool) -> None:
    guest = cloud.guest()
    before = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")

    root_disk = stop_and_stash(guest, tmp_path, flatten=flatten)
    guest.driver = cloud.drivers[1]
    guest.instance.flavor.vcpus, guest.instance.flavor.memory_mb = 2, 192
    guest.driver.spawn(guest.spec(root_disk))

    said = guest.wait_for_boot()
    after = said.last("CAUSEWAY-MARKER", disk="vda")
    assert after["first"] == before["first"]
    assert said.last("CAUSEWAY-GUEST")["boot"] == "2"
    assert said.last("CAUSEWAY-GUEST")["vcpus"] == "2"
    assert said.last("CAUSEWAY-GUEST")["memory_mb"] == "192"
    cloud.drivers[0].delete_stashed_disks(guest.uuid)
    assert guest.uuid not in cloud.drivers[0].list_disks()


def test_the_export_of_a_guest_that_wrote_little_is_small(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    guest.driver.power_off(guest.uuid, timeout=60)
    assert guest.base is not None
    with guest.driver.export_disk(guest.instance, "disk", flatten=False) as export:
        assert export.size < guest.base.path.stat().st_size / 4


def test_a_restored_server_runs_from_its_stashed_disks(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    before = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")
    stop_and_stash(guest, tmp_path)
    facts = guest.driver.inspect(guest.uuid)
    assert (facts.power_state, facts.has_disks, facts.has_stashed_disks) == (None, False, True)
    assert guest.driver.list_disks()[guest.uuid] is True
    assert b"CAUSEWAY-READY" in guest.driver.console_output(guest.uuid)

    for _ in range(2):
        guest.driver.restore_stashed_disks(guest.uuid)
    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING

    said = guest.wait_for_boot(2)
    assert said.last("CAUSEWAY-MARKER", disk="vda")["first"] == before["first"]
    assert guest.driver.list_disks()[guest.uuid] is False


def test_volume_and_address_go_along(cloud: Cloud, network: Net, tmp_path: Path) -> None:
    port = network.port()
    guest = cloud.guest(vifs=[port])
    volume = cloud.volume(guest)
    guest.volumes = [volume]
    first = guest.spawn().last("CAUSEWAY-MARKER", disk="vdb")["first"]

    root_disk = stop_and_stash(guest, tmp_path)
    guest.driver = cloud.drivers[1]
    guest.driver.spawn(guest.spec(root_disk))

    said = guest.wait_for_boot()
    assert said.last("CAUSEWAY-MARKER", disk="vdb") == {"disk": "vdb", "lines": "2", "first": first}
    assert said.last("CAUSEWAY-GUEST")["ip"] == port.fixed_ips[0].address
    assert network.lab.network.ping(network.id, port.fixed_ips[0].address).answered
    assert len(image_lines(cloud.path_of(volume))) == 2


def test_running_guest_is_not_exported(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.driver.spawn(guest.spec(guest.new_disk()))
    with (
        pytest.raises(GuestFailed, match="while its guest runs"),
        guest.driver.export_disk(guest.instance, "disk", flatten=False),
    ):
        pass


def test_snapshot_that_names_other_files_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    from causeway.virt.libvirt.commands import run

    guest = cloud.guest()
    secret, snapshot = tmp_path / "secret", tmp_path / "snapshot"
    secret.write_bytes(bytes(512))
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", secret, snapshot)
    with pytest.raises(ImageRefused):
        guest.driver.spawn(guest.spec(RootDisk(guest.base, "the-image", snapshot=snapshot)))
    assert not guest.driver.inspect(guest.uuid).has_disks


def test_receiving_continues_where_a_crash_cut_it(cloud: Cloud, tmp_path: Path) -> None:
    """The snapshot was moved in, but not yet put on its base, when the compute service died."""
    guest = cloud.guest()
    before = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")
    root_disk = stop_and_stash(guest, tmp_path)
    guest.driver = cloud.drivers[1]
    assert root_disk.snapshot is not None
    folder = cloud.instances_dirs[1] / guest.uuid
    folder.mkdir(parents=True)
    shutil.move(root_disk.snapshot, folder / "disk.received")

    guest.driver.spawn(guest.spec(root_disk))
    assert guest.wait_for_boot().last("CAUSEWAY-MARKER", disk="vda")["first"] == before["first"]
