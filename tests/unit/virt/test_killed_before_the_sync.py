"""A host's process is killed between a change of its files and the sync; the next one is asked for the same, and the power goes.

Whatever answers that something is done has it on the disk.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from causeway import durable
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.image_cache import ImageCache
from causeway.compute.host.claims import Claims
from causeway.hardware.fit import Limits
from causeway.virt.driver import RootDisk
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.simulated import SimulatedDriver

SERVER, MOVE = str(uuid.uuid4()), str(uuid.uuid4())


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced, by path."""
    seen: list[str] = []
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        seen.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    return seen


def killed_when_it_syncs(folder: Path, work: Callable[[], Any]) -> None:
    """``work`` ends when it is about to sync this folder."""
    sync = durable.sync

    def kill(path: Path) -> None:
        if path == folder:
            raise Killed
        sync(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "sync", kill)
        with pytest.raises(Killed):
            work()


def libvirt_disks(directory: Path) -> dict[str, Callable[[], None]]:
    disks = InstanceDisks(directory / "instances", 10)
    return {
        "stash": lambda: disks.stash(SERVER),
        "restore": lambda: disks.restore(SERVER),
        "delete": lambda: disks.delete(SERVER),
        "delete_stashed": lambda: disks.delete_stashed(SERVER),
    }


def simulated_disks(directory: Path) -> dict[str, Callable[[], None]]:
    driver = SimulatedDriver("host1", directory)
    driver.start()
    return {
        "stash": lambda: driver.stash_disks(SERVER),
        "restore": lambda: driver.restore_stashed_disks(SERVER),
        "delete": lambda: driver.delete_disks(SERVER),
        "delete_stashed": lambda: driver.delete_stashed_disks(SERVER),
    }


@pytest.mark.parametrize("of_driver", [libvirt_disks, simulated_disks])
@pytest.mark.parametrize("what", ["stash", "restore", "delete", "delete_stashed"])
def test_what_becomes_of_a_servers_disks_is_synced(
    tmp_path: Path,
    synced: list[str],
    of_driver: Callable[[Path], dict[str, Callable[[], None]]],
    what: str,
) -> None:
    instances = tmp_path / "instances"
    before = instances / (SERVER if what in ("stash", "delete") else f"{SERVER}_resize")
    before.mkdir(parents=True)
    (before / "disk").write_text("content")
    killed_when_it_syncs(instances, of_driver(tmp_path)[what])
    assert not before.exists()
    work = of_driver(tmp_path)[what]
    synced.clear()
    work()
    assert str(instances) in synced


def test_a_root_disk_that_has_its_name_already_is_synced(tmp_path: Path, synced: list[str]) -> None:
    disks = InstanceDisks(tmp_path, 10)
    disk = disks.root(SERVER)
    disk.parent.mkdir()
    disk.write_text("settled by a process that was killed then")
    disks.create_root(SERVER, RootDisk(None, None))
    assert str(disk.parent) in synced


def test_records_and_base_images_are_on_the_disk_when_a_host_has_started(tmp_path: Path, synced: list[str]) -> None:
    """A claim that was ended is ended, and a base image that guests stand on is there."""
    Claims(tmp_path / "claims", "host1", limits=Limits(1.0, 1.0)).load(None, [])
    images: Any = None
    ImageCache(tmp_path / "_base", images)
    DiskOffers(tmp_path / "offers")
    assert {str(tmp_path / name) for name in ("claims", "_base", "offers")} <= set(synced)


def test_an_offer_that_is_found_is_synced(tmp_path: Path, synced: list[str]) -> None:
    offers = DiskOffers(tmp_path)
    folder = tmp_path / f"{MOVE}.{SERVER}"

    @contextmanager
    def export(name: str) -> Any:
        raise AssertionError(name)
        yield

    killed_when_it_syncs(folder, lambda: offers.make(MOVE, SERVER, [], export))
    synced.clear()
    offers.make(MOVE, SERVER, [], export)
    assert str(folder) in synced


def test_the_end_of_an_offer_is_synced(tmp_path: Path, synced: list[str]) -> None:
    """Its secret opens it no more, also after a power cut."""
    offers = DiskOffers(tmp_path)
    (tmp_path / f"{MOVE}.{SERVER}").mkdir()
    synced.clear()
    offers.end(MOVE)
    assert str(tmp_path) in synced
