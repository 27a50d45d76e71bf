"""The disk of a real guest is uploaded while it runs, and is off for what it wrote meanwhile only."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from causeway.compute.guests import running_disk
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.errors import Cancelled, GuestFailed, WarmCopyImpossible
from causeway.model.states import PowerState
from causeway.virt.driver import RootDisk
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.test_warm_copies import bitmaps, disk, domain, write


@dataclass
class Images:
    """An image service with one image. ``meanwhile`` is done when the header has come."""

    file: Path
    meanwhile: Callable[[], None] = lambda: None
    sizes: list[int] = field(default_factory=list)

    def stream(self, _context: Any, _image_id: str, data: Callable[[], Iterable[bytes]]) -> None:
        with self.file.open("wb") as file:
            for part in data():
                if not self.sizes:
                    self.meanwhile()
                self.sizes.append(len(part))
                file.write(part)

    def show_of_server(self, _context: Any, _image_id: str) -> Any:
        return SimpleNamespace(status="queued")


def upload(guest: Guest, images: Images, progress: Callable[[int, int], None] = lambda *_: None) -> int:
    host = SimpleNamespace(
        driver=guest.driver, images=images, shutdown_timeout=lambda _instance: 20, lock=lambda _uuid: nullcontext()
    )
    return running_disk.upload_and_shut_down(cast(Host, host), RequestContext(), guest.instance, "the-image", progress)


def kill_hypervisor(guest: Guest) -> None:
    found = subprocess.run(["pgrep", "-f", f"uuid {guest.uuid}"], check=True, stdout=subprocess.PIPE).stdout.split()
    os.kill(int(found[0]), signal.SIGKILL)
    guest.wait(lambda _said: guest.driver.inspect(guest.uuid).power_state != PowerState.RUNNING)


def leaves_nothing(guest: Guest) -> None:
    found = domain(guest)
    assert found.listAllCheckpoints() == []
    assert not bitmaps(disk(guest))
    folder = guest.driver._disks.directory
    assert [*folder.glob(f"scratch-{guest.uuid}-*"), *folder.glob(f"rounds-{guest.uuid}*")] == []


def test_the_image_is_the_disk_of_the_guest_that_is_off_and_boots(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    marker = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")
    ran: list[PowerState | None] = []

    def boot_once_more() -> None:
        write(guest)
        ran.append(guest.driver.inspect(guest.uuid).power_state)

    images = Images(tmp_path / "image", boot_once_more)
    size = upload(guest, images)
    assert ran == [PowerState.RUNNING]
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.SHUTDOWN
    assert size == images.file.stat().st_size == sum(images.sizes)
    subprocess.run(["qemu-img", "check", "-q", "-f", "qcow2", str(images.file)], check=True)
    subprocess.run(["qemu-img", "compare", "-q", str(disk(guest)), str(images.file)], check=True)
    leaves_nothing(guest)

    other = cloud.guest(host=1)
    other.driver.spawn(other.spec(RootDisk(None, None, snapshot=images.file, size_gb=1)))
    assert other.wait_for_boot().last("CAUSEWAY-MARKER", disk="vda")["first"] == marker["first"]


def test_an_upload_whose_hypervisor_is_killed_fails_and_is_cleaned(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    guest.spawn()
    with pytest.raises((GuestFailed, WarmCopyImpossible)):
        upload(guest, Images(tmp_path / "image", lambda: kill_hypervisor(guest)))
    leaves_nothing(guest)


def test_a_guest_whose_upload_is_broken_off_notices_nothing(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    guest.spawn()
    boots = guest.console().boots

    def cancelled(*_counts: int) -> None:
        raise Cancelled("Nobody wants it any more.")

    with pytest.raises(Cancelled):
        upload(guest, Images(tmp_path / "image"), cancelled)
    leaves_nothing(guest)
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.RUNNING
    assert guest.console().boots == boots
