"""The simulated hypervisor keeps data as a real one would, and refuses what a real one refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from causeway.errors import ClaimRefused, GuestFailed, VifPluggingFailed
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.model.states import PowerState
from causeway.virt.driver import BaseImage, GuestSpec, RootDisk
from causeway.virt.folder_owner import OWNER
from causeway.virt.simulated import SimulatedDriver

UUID = "6d9f6a0c-5f8e-4b3b-9a53-2a4b1c0d7e11"
SMALL = Flavor("1", "gen1.small", 1, 128, 1)
LARGE = Flavor("2", "gen2.small", 2, 192, 2)


@pytest.fixture
def hosts(tmp_path: Path) -> dict[str, SimulatedDriver]:
    """Two hosts that share nothing."""
    return {name: host(tmp_path, name) for name in ("host1", "host2")}


@pytest.fixture
def source(hosts: dict[str, SimulatedDriver]) -> SimulatedDriver:
    return hosts["host1"]


@pytest.fixture
def target(hosts: dict[str, SimulatedDriver]) -> SimulatedDriver:
    return hosts["host2"]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(b"QFI\xfb" + bytes(1000))
    return path


def host(tmp_path: Path, name: str) -> SimulatedDriver:
    driver = SimulatedDriver(name, tmp_path / "hosts" / name, peers_dir=tmp_path / "hosts")
    driver.start()
    return driver


def instance(flavor: Flavor = SMALL) -> Instance:
    return Instance(UUID, "project", "user", "vm1", flavor, hostname="vm1")


def vif() -> Vif:
    return Vif("port1", "fa:16:3e:00:00:01", "network1", fixed_ips=[FixedIp("10.0.0.5", "subnet1")])


def base(path: Path) -> BaseImage:
    return BaseImage(path, "raw", 1)


def new(image: Path, flavor: Flavor = SMALL, **changes: object) -> GuestSpec:
    spec = GuestSpec(instance(flavor), RootDisk(base(image), "image1"), volumes=[], vifs=[vif()])
    for name, value in changes.items():
        setattr(spec, name, value)
    return spec


def existing(flavor: Flavor = SMALL, volumes: list[BlockDevice] | None = None) -> GuestSpec:
    return GuestSpec(instance(flavor), None, volumes=volumes or [], vifs=[vif()])


def volume(
    tmp_path: Path, name: str = "volume1", device: str = "/dev/vdb", boot_index: int | None = None
) -> BlockDevice:
    path = tmp_path / name
    if not path.exists():
        with path.open("wb") as file:
            file.truncate(1 << 20)
    return BlockDevice(
        f"bdm-{name}",
        UUID,
        "volume",
        "volume",
        boot_index=boot_index,
        device_name=device,
        volume_id=name,
        connection_info={"driver_volume_type": "file", "data": {"device_path": str(path)}},
    )


def written(driver: SimulatedDriver, device: str | None = None) -> list[str]:
    """What was written to a disk beside the guest's own marks."""
    return [line for line in driver.guest_read(UUID, device) if not line.startswith(("boot=", "attached,"))]


def files_of(driver: SimulatedDriver) -> list[str]:
    """Those of guests: the folder's owner is always there."""
    return sorted(path.name for path in driver._state_dir.rglob("*") if path.is_file() and path.name != OWNER)


def moved(source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path, *, flatten: bool) -> None:
    """The way of a root disk from host to host, as the data path of a move goes it."""
    source.power_off(UUID, 0)
    received = tmp_path / "received"
    with source.export_disk(instance(), "disk", flatten=flatten) as export:
        assert export.size == export.path.stat().st_size
        assert (export.disk_format, export.base_image_id) == ("qcow2", None if flatten else "image1")
        received.write_bytes(export.path.read_bytes())
    assert not export.path.exists()
    source.destroy(UUID, [vif()], [], destroy_disks=False)
    source.stash_disks(UUID)
    target.spawn(new(image, LARGE, root_disk=RootDisk(base(image), "image1", snapshot=received, size_gb=2)))
    assert not received.exists()


def test_a_host_reports_its_uptime(tmp_path: Path) -> None:
    assert host(tmp_path, "host1").host_facts().uptime == "up 0 days"


def test_a_guest_boots_and_says_so_on_its_console(source: SimulatedDriver, image: Path) -> None:
    assert source.spawn(new(image)) is PowerState.RUNNING
    guest, marker, ready = source.console_output(UUID).decode().splitlines()
    assert guest == "CAUSEWAY-GUEST boot=1 vcpus=1 memory_mb=128 mac=fa:16:3e:00:00:01 ip=10.0.0.5 hostname=vm1"
    assert marker.startswith("CAUSEWAY-MARKER disk=vda lines=1 first=boot=1,id=")
    assert ready == "CAUSEWAY-READY"
    assert source.list_guests() == {UUID: PowerState.RUNNING}


def test_what_was_written_survives_stop_and_start(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "hello")
    source.power_off(UUID, 10)
    assert source.inspect(UUID).power_state is PowerState.SHUTDOWN
    assert source.power_on(existing()) is PowerState.RUNNING
    assert written(source) == ["hello"]
    assert b"CAUSEWAY-GUEST boot=2 " in source.console_output(UUID)


def test_running_guests_are_found_again_by_a_new_process(source: SimulatedDriver, image: Path, tmp_path: Path) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "hello")
    again = host(tmp_path, "host1")
    assert again.list_guests() == {UUID: PowerState.RUNNING}
    assert written(again) == ["hello"]


@pytest.mark.parametrize("flatten", [False, True])
def test_a_root_disk_moves_with_its_data(
    source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path, flatten: bool
) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "before the move")
    moved(source, target, image, tmp_path, flatten=flatten)
    assert written(target) == ["before the move"]
    facts = target.inspect(UUID)
    assert (facts.vcpus, facts.memory_mb, facts.power_state) == (2, 192, PowerState.RUNNING)
    assert target.running_anywhere(UUID) == ["host2"]
    assert not source.double_starts + target.double_starts


def test_revert_restores_the_disk_as_it_was_when_it_was_stashed(
    source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path
) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "before")
    moved(source, target, image, tmp_path, flatten=False)
    target.guest_write(UUID, "on the target")
    target.destroy(UUID, [vif()], [], destroy_disks=True)
    assert files_of(target) == []
    assert source.list_disks() == {UUID: True}
    source.restore_stashed_disks(UUID)
    source.power_on(existing())
    assert written(source) == ["before"]
    assert source.list_disks() == {UUID: False}


def test_confirm_leaves_nothing_at_the_source(
    source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path
) -> None:
    source.spawn(new(image))
    moved(source, target, image, tmp_path, flatten=False)
    source.delete_stashed_disks(UUID)
    assert files_of(source) == []
    assert source.list_disks() == {}


def test_a_snapshot_alone_becomes_an_image_whose_data_new_guests_see(
    source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path
) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "golden")
    source.power_off(UUID, 0)
    golden = tmp_path / "golden"
    with source.export_disk(instance(), "disk", flatten=True) as export:
        golden.write_bytes(export.path.read_bytes())
    target.spawn(new(golden))
    assert written(target) == ["golden"]


def test_volumes_are_marked_by_the_guest_and_keep_their_data(
    source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path
) -> None:
    disk = volume(tmp_path)
    source.spawn(new(image, volumes=[disk]))
    source.guest_write(UUID, "on the volume", "vdb")
    source.destroy(UUID, [vif()], [disk], destroy_disks=True)
    target.spawn(new(image, volumes=[disk]))
    assert written(target, "/dev/vdb") == ["on the volume"]
    assert b"CAUSEWAY-MARKER disk=vdb lines=3 first=boot=1," in target.console_output(UUID)
    assert (tmp_path / "volume1").stat().st_size == 1 << 20


def test_a_guest_can_boot_from_a_volume(source: SimulatedDriver, target: SimulatedDriver, tmp_path: Path) -> None:
    root = volume(tmp_path, device="/dev/vda", boot_index=0)
    source.spawn(existing(volumes=[root]))
    source.guest_write(UUID, "root data")
    source.destroy(UUID, [vif()], [root], destroy_disks=True)
    target.spawn(existing(LARGE, volumes=[root]))
    assert written(target) == ["root data"]
    assert b"CAUSEWAY-GUEST boot=2 vcpus=2" in target.console_output(UUID)


def test_volumes_come_and_go_while_the_guest_runs(source: SimulatedDriver, image: Path, tmp_path: Path) -> None:
    source.spawn(new(image))
    disk = volume(tmp_path)
    source.attach_volume(UUID, disk)
    source.attach_volume(UUID, disk)
    source.guest_write(UUID, "hot", "vdb")
    with pytest.raises(GuestFailed, match="has a disk vdb already"):
        source.attach_volume(UUID, volume(tmp_path, "volume2"))
    with pytest.raises(GuestFailed, match=r"attached to guest .* as vdb already"):
        source.attach_volume(UUID, volume(tmp_path, device="/dev/vdc"))
    source.detach_volume(UUID, disk)
    source.detach_volume(UUID, disk)
    source.attach_volume(UUID, volume(tmp_path, device="/dev/vdc"))
    assert written(source, "vdc") == ["hot"]


def test_ports_come_and_go(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image, vifs=[]))
    source.attach_interface(UUID, vif())
    source.attach_interface(UUID, vif())
    with pytest.raises(GuestFailed, match="already"):
        source.attach_interface(UUID, Vif("port2", vif().address, "network1"))
    source.detach_interface(UUID, vif())
    source.attach_interface(UUID, Vif("port2", vif().address, "network1"))


def test_a_volume_that_is_not_there_is_refused(source: SimulatedDriver, image: Path, tmp_path: Path) -> None:
    disk = volume(tmp_path)
    disk.connection_info = {"data": {"device_path": str(tmp_path / "elsewhere")}}
    with pytest.raises(ClaimRefused, match="not there"):
        source.check_volume_connectable(disk.connection_info)
    with pytest.raises(ClaimRefused, match="no device path"):
        source.check_volume_connectable({"driver_volume_type": "rbd", "data": {}})
    with pytest.raises(GuestFailed, match="not there"):
        source.spawn(new(image, volumes=[disk]))
    assert files_of(source) == []


def test_a_running_guest_is_not_spawned_exported_stashed_or_deleted(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image))
    with pytest.raises(GuestFailed, match="running already"):
        source.spawn(new(image))
    with pytest.raises(GuestFailed, match="can't be exported"), source.export_disk(instance(), "disk", flatten=True):
        pass
    with pytest.raises(GuestFailed, match="can't be stashed"):
        source.stash_disks(UUID)
    with pytest.raises(GuestFailed, match="can't be deleted"):
        source.delete_disks(UUID)
    assert source.list_guests() == {UUID: PowerState.RUNNING}


def test_a_snapshot_must_be_there_whole_and_of_this_image(
    source: SimulatedDriver, target: SimulatedDriver, image: Path, tmp_path: Path
) -> None:
    source.spawn(new(image))
    source.power_off(UUID, 0)
    with source.export_disk(instance(), "disk", flatten=False) as export:
        overlay = export.path.read_bytes()
    snapshot = tmp_path / "snapshot"
    for content, given, base_image_id, message in [
        (None, base(image), "image1", "snapshot to start from is missing"),
        (overlay[:10], base(image), "image1", "damaged"),
        (overlay, None, None, "needs its base image image1"),
        (overlay, base(image), "image2", "of a server on image image1"),
        (overlay, base(tmp_path / "nothing"), "image1", "missing in the image cache"),
    ]:
        if content is not None:
            snapshot.write_bytes(content)
        with pytest.raises(GuestFailed, match=message):
            target.spawn(new(image, root_disk=RootDisk(given, base_image_id, snapshot=snapshot)))
    assert files_of(target) == []
    assert target.list_disks() == {}


def test_a_guest_without_its_disk_does_not_start(source: SimulatedDriver) -> None:
    with pytest.raises(GuestFailed, match="disk 'disk' is missing"):
        source.power_on(existing())
    assert files_of(source) == []


def test_ports_are_plugged_while_the_guest_is_paused_and_it_runs_afterwards(
    source: SimulatedDriver, image: Path
) -> None:
    seen: list[PowerState | None] = []

    @contextmanager
    def vifs_plugged() -> Iterator[None]:
        seen.append(source.inspect(UUID).power_state)
        yield
        seen.append(source.inspect(UUID).power_state)

    assert source.spawn(new(image), vifs_plugged=vifs_plugged) is PowerState.RUNNING
    assert seen == [None, PowerState.PAUSED]


def test_a_spawn_that_fails_leaves_what_was_there(source: SimulatedDriver, image: Path, tmp_path: Path) -> None:
    @contextmanager
    def never_plugged() -> Iterator[None]:
        yield
        raise VifPluggingFailed("The network service did not plug the port.")

    with pytest.raises(VifPluggingFailed):
        source.spawn(new(image), vifs_plugged=never_plugged)
    assert files_of(source) == []

    source.spawn(new(image))
    source.guest_write(UUID, "precious")
    source.power_off(UUID, 0)
    with pytest.raises(VifPluggingFailed):
        source.spawn(new(image), vifs_plugged=never_plugged)
    assert source.inspect(UUID).power_state is PowerState.SHUTDOWN
    assert written(source) == ["precious"]
    assert written(host(tmp_path, "host1")) == ["precious"]


def test_a_guest_can_be_made_without_being_started(source: SimulatedDriver, image: Path) -> None:
    assert source.spawn(new(image, power_on=False)) is PowerState.SHUTDOWN
    assert source.console_output(UUID) == b""
    assert source.power_on(existing()) is PowerState.RUNNING


def test_everything_can_be_repeated(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image))
    for _ in range(2):
        assert source.power_on(existing()) is PowerState.RUNNING
    for _ in range(2):
        source.power_off(UUID, 0)
    for _ in range(2):
        source.destroy(UUID, [vif()], [], destroy_disks=False)
    for _ in range(2):
        source.stash_disks(UUID)
        assert source.inspect(UUID).has_stashed_disks
    for _ in range(2):
        source.restore_stashed_disks(UUID)
        assert source.inspect(UUID).has_disks
    for _ in range(2):
        source.delete_disks(UUID)
        source.delete_stashed_disks(UUID)
        source.destroy(UUID, [], [], destroy_disks=True)
    assert source.list_disks() == {}


def test_disks_and_stashed_disks_of_one_server_are_not_mixed_up(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "old")
    source.destroy(UUID, [], [], destroy_disks=False)
    source.stash_disks(UUID)
    source.spawn(new(image, LARGE))
    assert source.list_disks() == {UUID: True}
    source.destroy(UUID, [], [], destroy_disks=False)
    with pytest.raises(GuestFailed, match="not for this host to guess"):
        source.restore_stashed_disks(UUID)
    source.delete_disks(UUID)
    source.restore_stashed_disks(UUID)
    source.power_on(existing())
    assert written(source) == ["old"]


def test_a_soft_reboot_needs_a_guest_that_runs(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image))
    source.guest_write(UUID, "kept")
    assert source.reboot(existing(), hard=False, timeout=1) is PowerState.RUNNING
    source.power_off(UUID, 0)
    with pytest.raises(GuestFailed, match="only a hard reboot"):
        source.reboot(existing(), hard=False, timeout=1)
    assert source.reboot(existing(LARGE), hard=True, timeout=1) is PowerState.RUNNING
    assert written(source) == ["kept"]
    assert b"CAUSEWAY-GUEST boot=3 vcpus=2" in source.console_output(UUID)


def test_a_guest_that_runs_on_two_hosts_is_noticed(
    source: SimulatedDriver, target: SimulatedDriver, image: Path
) -> None:
    source.spawn(new(image))
    target.spawn(new(image))
    assert target.double_starts == [UUID]
    assert target.running_anywhere(UUID) == ["host1", "host2"]


def test_many_threads_at_one_guest_leave_it_whole(source: SimulatedDriver, image: Path) -> None:
    source.spawn(new(image))

    def write(number: int) -> None:
        for line in range(20):
            source.guest_write(UUID, f"{number}-{line}")
            source.power_on(existing())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written(source)) == sorted(f"{number}-{line}" for number in range(4) for line in range(20))


def test_the_host_reports_what_the_scheduler_needs(source: SimulatedDriver) -> None:
    facts = source.host_facts()
    assert (facts.hypervisor_hostname, facts.hypervisor_type) == ("host1", "simulated")
    assert ["x86_64", "simulated", "hvm"] in facts.supported_instances
    assert "HW_ARCH_X86_64" in facts.traits
