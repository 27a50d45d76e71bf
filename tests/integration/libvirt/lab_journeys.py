"""Guests of these tests that are on their way to another host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveTarget, Presence
from tests.integration.libvirt.lab_guests import Guest

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

# MiB/s: slow enough that a guest of 128 MiB can be caught on its way.
SLOW = LiveOptions(bandwidth=2)

# A process that says each second, on the console, that it is still the same one.
TICKING = {
    "openstack/latest/user_data": b"#!/bin/sh\n"
    b"id=$(cat /proc/sys/kernel/random/uuid)\n"
    b"(n=0; while sleep 0.5; do n=$((n+1)); echo $n > /disk/ticks; sync; echo TICK id=$id n=$n > /dev/console; done) &\n"
}


def no_word(_progress: LiveProgress) -> None:
    pass


def prepared(guest: Guest, target: LibvirtDriver) -> LiveTarget:
    source = guest.driver.live_source(guest.instance)
    target.check_live_target(source)
    return target.prepare_live_target(guest.spec(guest.new_disk()), source)


@contextmanager
def runs_on(driver: LibvirtDriver) -> Iterator[None]:
    """Guests that this driver's host sends run on while their memory travels, as those with KVM do. QEMU may miss what they write
    meanwhile (`dirty_memory`): what they are at the target is not looked at closely."""
    settings = driver._live.settings
    settings.trust_emulator = True
    try:
        yield
    finally:
        settings.trust_emulator = False


@contextmanager
def under_way(guest: Guest, target: LibvirtDriver, options: LiveOptions = SLOW) -> Iterator[Future[None]]:
    """The guest's memory travels, slowly, while it runs, and while the context is entered."""
    with runs_on(guest.driver):
        yield from _under_way(guest, target, options)


def _under_way(guest: Guest, target: LibvirtDriver, options: LiveOptions) -> Iterator[Future[None]]:
    guest.config_drive = TICKING
    guest.spawn()
    guest.wait(lambda said: "TICK id=" in said.text)
    where = prepared(guest, target)
    call: Future[None] = Future()

    def migrate() -> None:
        try:
            guest.driver.live_migrate(guest.spec(), where, options, no_word)
            call.set_result(None)
        except Exception as failure:  # noqa: BLE001 - whoever asks for the result gets it
            call.set_exception(failure)

    # Not waited for: a hypervisor that hangs fails one test, and not all that come after it.
    threading.Thread(target=migrate, daemon=True, name=f"migrates {guest.uuid}").start()
    wait_until(lambda: travels(guest) or call.done())
    assert not call.done(), call.exception()
    try:
        yield call
    finally:
        guest.driver.abort_live_migration(guest.uuid)


def travels(guest: Guest) -> bool:
    progress = guest.driver.live_progress(guest.uuid)
    return progress is not None and progress.memory_processed > 0


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come that far"
        time.sleep(0.1)


def assert_runs_on_at_the_source(guest: Guest) -> None:
    """As if nothing had been: it ticks, as the same one, and nothing is on its way."""
    source = guest.driver
    assert source.live_progress(guest.uuid) is None
    assert source.presence(guest.uuid) is Presence.RUNNING
    last = guest.console().last("TICK")
    guest.wait(lambda said: int(said.last("TICK")["n"]) > int(last["n"]) + 1)
    assert guest.console().last("TICK")["id"] == last["id"]
    assert guest.console().boots == 1


def orders(guest: Guest, driver: LibvirtDriver) -> list[Callable[[], object]]:
    """All that could make a guest run that may run elsewhere, or make that possible later."""
    return [
        lambda: driver.unpause(guest.uuid),
        lambda: driver.power_on(guest.spec()),
        lambda: driver.reboot(guest.spec(), hard=True, timeout=0),
        lambda: driver.reboot(guest.spec(), hard=False, timeout=5),
        lambda: driver.resume(guest.spec()),
        lambda: driver.spawn(guest.spec(guest.new_disk())),
        lambda: driver.power_off(guest.uuid, 0),
        lambda: driver.pause(guest.uuid),
        lambda: driver.suspend(guest.uuid),
    ]
