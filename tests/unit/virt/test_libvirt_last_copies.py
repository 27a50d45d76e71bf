"""What could destroy the last copy of a server, or start a second one, is refused: asked of libvirt's own test hypervisor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libvirt")

import libvirt

from causeway.errors import GuestFailed
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt.driver import GuestSpec
from causeway.virt.libvirt import connection as connections
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import AsideCall, Connection
from causeway.virt.libvirt.driver import LibvirtDriver
from causeway.virt.libvirt.hypervisor_events import EVENT_LOOP
from causeway.virt.libvirt.presence import presence_of
from causeway.virt.live_guest import Presence
from tests.unit.virt.libvirt_hypervisor import UUID, TestHypervisor

URI = "test:///default"


@pytest.fixture
def driver(tmp_path: Path, hypervisor: TestHypervisor) -> LibvirtDriver:
    made = LibvirtDriver(URI, "host1", tmp_path / "instances", virt_type="qemu")
    made._connection = hypervisor
    made._disks.make_folder(UUID)
    made._disks.root(UUID).write_bytes(b"precious")
    return made


WORK: dict[str, Callable[[LibvirtDriver], None]] = {
    "deleted": lambda driver: driver.delete_disks(UUID),
    "stashed": lambda driver: driver.stash_disks(UUID),
    "restored": lambda driver: driver.restore_stashed_disks(UUID),
}


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize("what", WORK)
def test_disks_stay_where_they_are_while_a_guest_uses_them(
    driver: LibvirtDriver, hypervisor: TestHypervisor, what: str, pause: bool
) -> None:
    if pause:
        hypervisor.guest.suspend()
    with pytest.raises(GuestFailed, match=f"can't be {what} while its guest runs"):
        WORK[what](driver)
    assert driver._disks.root(UUID).read_bytes() == b"precious"


def test_disks_of_a_guest_that_is_off_are_stashed_restored_and_deleted(
    driver: LibvirtDriver, hypervisor: TestHypervisor
) -> None:
    hypervisor.guest.destroy()
    driver.stash_disks(UUID)
    assert not driver._disks.folder(UUID).exists()
    driver.restore_stashed_disks(UUID)
    assert driver._disks.root(UUID).read_bytes() == b"precious"
    driver.delete_disks(UUID)
    assert not driver._disks.folder(UUID).exists()


def test_a_paused_guest_whose_memory_is_in_no_file_is_not_destroyed_to_wake_it(
    driver: LibvirtDriver, hypervisor: TestHypervisor
) -> None:
    hypervisor.guest.suspend()
    spec = GuestSpec(Instance(UUID, "project", "user", "vm1", Flavor("1", "small", 1, 128, 1)), None, [], [])
    with pytest.raises(GuestFailed, match="lives here already"):
        driver.wake(spec)
    assert power.state(hypervisor, UUID) is PowerState.PAUSED


@pytest.mark.parametrize("state", sorted(power._POWER_STATES))
def test_a_guest_that_may_run_by_itself_is_never_shown_as_off(state: int) -> None:
    lives = presence_of(state, 0, defined=True) is Presence.RUNNING
    assert (power._POWER_STATES[state] is PowerState.RUNNING) == lives


# a hypervisor that is reached too late


class SlowHypervisor(Connection):
    """It is connected to when a test says so."""

    def __init__(self) -> None:
        super().__init__(URI, name="slow", timeout=30)
        self.answers, self.asked = threading.Event(), threading.Event()

    def _connect(self) -> Any:
        self.asked.set()
        assert self.answers.wait(30)
        return libvirt.open(URI)


def test_a_call_that_nobody_waits_for_any_more_is_not_begun() -> None:
    slow, begun = SlowHypervisor(), list[str]()
    with pytest.raises(GuestFailed, match="did not answer within 0 s when asked to start a guest"):
        slow.call("start a guest", lambda _hypervisor: begun.append("late"), timeout=0.05)
    assert slow.asked.wait(30)
    slow.answers.set()
    slow.call("start another guest", lambda _hypervisor: begun.append("in time"))
    slow._pool.shutdown()
    assert begun == ["in time"]


@pytest.mark.parametrize("abandons", [True, False])
def test_a_call_aside_that_nobody_waits_for_any_more_is_not_begun(
    monkeypatch: pytest.MonkeyPatch, abandons: bool
) -> None:
    answers, begun = threading.Event(), list[str]()

    class Opened:
        def setKeepAlive(self, *_seconds: int) -> None: ...

        def close(self) -> None: ...

    def slow(_uri: str) -> Any:
        assert answers.wait(30)
        return Opened()

    monkeypatch.setattr(libvirt, "open", slow)
    call = AsideCall(URI, lambda _hypervisor: begun.append("begun"))
    call.start()
    if abandons:
        call.do_not_begin()
    answers.set()
    assert call.ended.wait(30)
    assert begun == ([] if abandons else ["begun"])
    assert isinstance(call.error, GuestFailed) == abandons


def test_closing_does_not_wait_for_a_hypervisor_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(EVENT_LOOP, "release", lambda: None)
    slow = SlowHypervisor()
    with pytest.raises(GuestFailed, match="did not answer"):
        slow.call("say its version", lambda hypervisor: hypervisor.getVersion(), timeout=0.05)
    assert slow.asked.wait(30)
    slow.close()
    slow.answers.set()
