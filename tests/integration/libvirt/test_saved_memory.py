"""The memory of a real guest goes to a file, and the guest continues from it: elsewhere, or where it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid as uuids
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causeway.compute.disks.copies import Copies
from causeway.compute.disks.rounds import Rounds
from causeway.errors import GuestFailed
from causeway.model.outcomes import OperationToken
from causeway.model.states import PowerState, VmState
from causeway.virt.driver import MEMORY, ROOT_DISK, RootDisk
from causeway.virt.live_guest import Presence
from tests.integration.libvirt.lab_guests import Cloud, Console, Guest, Net, image_lines
from tests.integration.libvirt.lab_journeys import TICKING
from tests.integration.libvirt.test_warm_copies import Warm

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

pytestmark = pytest.mark.timeout(240)


def ticking(guest: Guest) -> dict[str, str]:
    guest.config_drive = TICKING
    guest.spawn()
    return guest.wait(lambda said: "TICK id=" in said.text).last("TICK")


def ticks_on(guest: Guest, before: dict[str, str]) -> None:
    """The same process counts on: no tick was lost, none came twice."""

    def next_ones(said: Console) -> bool:
        return said.text.count("TICK id=") > 1 and int(said.last("TICK")["n"]) > int(before["n"]) + 1

    said = guest.wait(next_ones)
    lines = [line.strip() for line in said.text.splitlines() if line.startswith("TICK id=")]
    # What the guest said while its console was closed is nowhere; the counts that are there follow one another.
    counts = [int(line.split("n=")[1]) for line in lines[1:]]
    assert counts == list(range(counts[0], counts[0] + len(counts)))
    assert {line.split()[1] for line in lines[1:]} == {f"id={before['id']}"}


def resume_woken(driver: LibvirtDriver, guest: Guest, *, is_paused: bool = False) -> None:
    assert driver.inspect(guest.uuid).power_state is PowerState.PAUSED
    driver.resume_woken(guest.uuid, is_paused=is_paused)
    assert driver.saved_memory(guest.uuid) is None
    assert not list(driver._disks.folder(guest.uuid).glob("memory*"))


def kill(guest: Guest) -> None:
    found = subprocess.run(["pgrep", "-f", f"uuid {guest.uuid}"], check=True, stdout=subprocess.PIPE)
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)


def test_a_guest_is_saved_here_and_woken_there(cloud: Cloud, network: Net, tmp_path: Path) -> None:
    """Its disk is copied in rounds before; what changed since is known though the guest was saved, not shut down."""
    guest = cloud.guest(vifs=[network.port()])
    guest.volumes.append(cloud.volume(guest))
    before = ticking(guest)
    source, target = cloud.drivers
    warm = Warm(
        guest,
        Rounds(tmp_path / "rounds", source, lambda _size: None),
        Copies(tmp_path / "copies", target),
        OperationToken(str(uuids.uuid4()), str(uuids.uuid4()), 1, "CopyWhileRunning"),
    )
    first = warm.begin()
    warm.receive(first)
    guest.wait(lambda said: int(said.last("TICK")["n"]) > int(before["n"]) + 2)
    warm.rounds.end(warm.token.operation_id)
    last = guest.console().last("TICK")
    source.save_memory(guest.uuid)
    memory = source.saved_memory(guest.uuid)
    assert memory is not None
    assert source.inspect(guest.uuid).power_state is PowerState.SHUTDOWN
    copy = warm.complete(first.number)
    received = tmp_path / "received"
    shutil.copy(memory, received)
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=False)
    source.stash_disks(guest.uuid)
    assert source.saved_memory(guest.uuid, stashed=True) is not None

    spec = guest.spec(RootDisk(guest.base, "the-image", snapshot=copy, size_gb=1))
    spec.memory = received
    target.wake(spec)
    # Whoever asks twice finds it done.
    target.wake(guest.spec())
    guest.driver = target
    resume_woken(target, guest)
    ticks_on(guest, last)
    assert guest.console().boots == 0
    assert network.lab.network.ping(network.id, guest.vifs[0].fixed_ips[0].address).received
    # The definition for the next start is this host's, and the disk is whole.
    target.power_off(guest.uuid, timeout=60)
    assert target.power_on(guest.spec())
    again = guest.wait_for_boot()
    assert again.last("CAUSEWAY-GUEST")["boot"] == "2"
    assert len(image_lines(cloud.path_of(guest.volumes[0]))) == 2
    source.delete_stashed_disks(guest.uuid)


def test_a_guest_continues_where_it_was_saved(cloud: Cloud) -> None:
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver
    driver.save_memory(guest.uuid)
    driver.save_memory(guest.uuid)
    last = guest.console().last("TICK")
    driver.destroy(guest.uuid, [], [], destroy_disks=False)
    driver.stash_disks(guest.uuid)
    driver.save_memory(guest.uuid)
    driver.restore_stashed_disks(guest.uuid)
    driver.wake(guest.spec())
    # Whoever was to have it continue died when he had begun.
    memory = driver.saved_memory(guest.uuid)
    assert memory is not None
    memory.rename(memory.with_name("memory.used"))
    resume_woken(driver, guest)
    ticks_on(guest, last)


def test_two_who_save_a_guest_at_once_lose_nothing(cloud: Cloud) -> None:
    """One of them may have been abandoned, while the hypervisor continued."""
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver

    def save(_number: int) -> str:
        try:
            driver.save_memory(guest.uuid)
        except GuestFailed as failure:
            return failure.message
        return ""

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(save, range(2)))
    assert "" in said, said
    last = guest.console().last("TICK")
    driver.save_memory(guest.uuid)
    driver.wake(guest.spec())
    resume_woken(driver, guest)
    ticks_on(guest, last)


def test_a_guest_whose_hypervisor_is_killed_before_it_continues_is_woken_again(cloud: Cloud) -> None:
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver
    driver.save_memory(guest.uuid)
    last = guest.console().last("TICK")
    driver.wake(guest.spec())
    kill(guest)
    guest.wait(lambda _said: driver.inspect(guest.uuid).power_state is not PowerState.PAUSED)
    driver.wake(guest.spec())
    resume_woken(driver, guest)
    ticks_on(guest, last)


def test_a_guest_that_its_user_paused_stays_so(cloud: Cloud) -> None:
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver
    driver.pause(guest.uuid)
    last = guest.console().last("TICK")
    driver.save_memory(guest.uuid)
    driver.wake(guest.spec())
    resume_woken(driver, guest, is_paused=True)
    assert driver.presence(guest.uuid) is Presence.PAUSED
    driver.unpause(guest.uuid)
    ticks_on(guest, last)


def test_a_suspended_guest_is_resumed_at_another_host(cloud: Cloud, network: Net, tmp_path: Path) -> None:
    """What was saved when it was suspended travels as it is; nothing of it runs on the way."""
    guest = cloud.guest(vifs=[network.port()])
    guest.volumes.append(cloud.volume(guest))
    ticking(guest)
    source, target = cloud.drivers
    source.suspend(guest.uuid)
    source.suspend(guest.uuid)
    last = guest.console().last("TICK")
    guest.instance.vm_state = VmState.SUSPENDED
    target.check_can_wake(source.live_source(guest.instance))
    source.save_memory(guest.uuid)
    memory = source.saved_memory(guest.uuid)
    assert memory is not None
    received = tmp_path / "received"
    shutil.copy(memory, received)
    with source.export_disk(guest.instance, ROOT_DISK, flatten=False) as export:
        disk = Path(shutil.copy(export.path, tmp_path / "disk"))
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=False)
    source.stash_disks(guest.uuid)

    root = RootDisk(guest.base, "the-image", snapshot=disk, snapshot_format=export.disk_format, size_gb=1)
    spec = guest.spec(root, power_on=False)
    spec.memory = received
    target.define_suspended(spec)
    # Whoever asks twice finds it done.
    target.define_suspended(guest.spec(power_on=False))
    assert target.inspect(guest.uuid).power_state is PowerState.SHUTDOWN
    guest.driver = target
    # And as at any host that takes it on from here.
    target.check_can_wake(target.live_source(guest.instance))
    target.resume(guest.spec())
    assert not list(target._disks.folder(guest.uuid).glob("memory*"))
    ticks_on(guest, last)
    assert guest.console().boots == 0
    assert network.lab.network.ping(network.id, guest.vifs[0].fixed_ips[0].address).received
    source.delete_stashed_disks(guest.uuid)


def test_a_suspended_guest_that_came_back_is_resumed_where_it_was(cloud: Cloud) -> None:
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver
    driver.suspend(guest.uuid)
    last = guest.console().last("TICK")
    driver.destroy(guest.uuid, [], [], destroy_disks=False)
    driver.stash_disks(guest.uuid)
    driver.restore_stashed_disks(guest.uuid)
    driver.define_suspended(guest.spec(power_on=False))
    driver.resume(guest.spec())
    # Whoever asked for that died, and asks once more.
    driver.resume(guest.spec())
    ticks_on(guest, last)


def test_a_suspended_guest_whose_resume_failed_is_suspended_still(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver
    driver.suspend(guest.uuid)
    last = guest.console().last("TICK")

    def fail(*_args: object) -> None:
        raise GuestFailed("it does not wake")

    monkeypatch.setattr("causeway.virt.libvirt.storage.saved_memory.wake", fail)
    with pytest.raises(GuestFailed, match="does not wake"):
        driver.resume(guest.spec())
    monkeypatch.undo()
    assert driver.inspect(guest.uuid).power_state is PowerState.SHUTDOWN
    # Whoever had it continue died when he had begun.
    driver.wake(guest.spec())
    memory = driver.saved_memory(guest.uuid)
    assert memory is not None
    memory.rename(memory.with_name("memory.used"))
    driver.resume(guest.spec())
    ticks_on(guest, last)


def test_a_suspended_guest_without_its_memory_can_not_be_described(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.instance.vm_state = VmState.SUSPENDED
    with pytest.raises(GuestFailed, match="is not in a file that can be moved"):
        guest.driver.live_source(guest.instance)


def test_what_was_not_saved_to_its_end_is_no_memory(cloud: Cloud) -> None:
    guest = cloud.guest()
    ticking(guest)
    driver = guest.driver
    driver.save_memory(guest.uuid)
    memory = driver.saved_memory(guest.uuid)
    assert memory is not None
    # As libvirt leaves it when the guest dies on the way.
    content = memory.read_bytes()
    memory.unlink()
    partial = memory.with_name(f"{MEMORY}.partial")
    partial.write_bytes(b"LibvirtQemudPart" + content[16:])
    with pytest.raises(GuestFailed, match="no memory to save"):
        driver.save_memory(guest.uuid)
    # One that was, by a process that died then, is.
    partial.write_bytes(content)
    driver.save_memory(guest.uuid)
    assert driver.saved_memory(guest.uuid) is not None
    # Who boots has no use for it.
    driver.power_on(guest.spec())
    guest.wait_for_boot(2)
    assert driver.saved_memory(guest.uuid) is None
