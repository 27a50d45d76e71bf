"""What is left of a live migration when something dies or is unreachable in the middle of it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.virt.lab.hosts import Lab, LibvirtEndpoint, missing
from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveTarget, Presence
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.lab_journeys import (
    SLOW,
    TICKING,
    assert_runs_on_at_the_source,
    no_word,
    orders,
    prepared,
    travels,
    under_way,
    wait_until,
)

if missing() is None:
    from causeway.virt.libvirt import power
    from causeway.virt.libvirt.live import dead_peers, migration

pytestmark = pytest.mark.timeout(240)


def is_absent(driver: Any, guest: Any) -> bool:
    return bool(driver.presence(guest.uuid) is Presence.ABSENT)


def test_a_guest_that_is_destroyed_while_it_migrates_is_gone_from_both_hosts(cloud: Cloud) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        guest.driver.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
        with pytest.raises(GuestFailed):
            call.result(60)
    for driver in cloud.drivers:
        wait_until(partial(is_absent, driver, guest))


@pytest.mark.parametrize("hard", [False, True])
def test_a_guest_that_moves_while_it_is_rebooted_is_not_started_here(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, hard: bool
) -> None:
    guest = cloud.guest()
    guest.driver.spawn(guest.spec(guest.new_disk()))
    # To this host a guest that is through looks like one that went off, and then it is not there.
    monkeypatch.setattr(
        power, "shut_down", lambda connection, uuid, _timeout: power.destroy_and_undefine(connection, uuid)
    )
    with pytest.raises(GuestFailed, match="went to another host"):
        guest.driver.reboot(guest.spec(), hard=hard, timeout=5)
    assert guest.driver.presence(guest.uuid) is Presence.ABSENT


def test_a_guest_runs_at_its_source_if_the_targets_qemu_dies(cloud: Cloud, lab_dir: Path) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        (pid_file,) = (lab_dir / "hosts" / "cell2-host1" / "run" / "qemu").glob(f"*{guest.uuid}*.pid")
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        with pytest.raises(GuestFailed):
            call.result(60)
    assert_runs_on_at_the_source(guest)
    assert cloud.drivers[1].presence(guest.uuid) is Presence.ABSENT


@pytest.mark.parametrize("host", ["cell1-host1", "cell2-host1"])
def test_a_libvirtd_dies_in_the_middle_and_comes_back(cloud: Cloud, lab_dir: Path, host: str) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        os.kill(int((lab_dir / "hosts" / host / "libvirtd.pid").read_text()), signal.SIGKILL)
        with pytest.raises(GuestFailed):
            call.result(60)
    assert_runs_on_at_the_source(guest)
    wait_until(lambda: cloud.drivers[1].presence(guest.uuid) is Presence.ABSENT)
    guest.driver.live_migrate(guest.spec(), prepared(guest, cloud.drivers[1]), LiveOptions(), no_word)
    assert cloud.drivers[1].presence(guest.uuid) is Presence.RUNNING


def test_a_hypervisor_that_says_nothing_any_more_is_abandoned(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        monkeypatch.setattr(migration, "_SILENT_SECONDS", 3.0)

        def no_answer(_uuid: str) -> None:
            raise GuestFailed("The hypervisor did not answer.")

        abort = guest.driver._live.abort
        monkeypatch.setattr(guest.driver._live, "_job", no_answer)
        # Its call is not over: it may take as long as it needs.
        time.sleep(5)
        assert not call.done()
        monkeypatch.undo()
        monkeypatch.setattr(migration, "_SILENT_SECONDS", 3.0)
        abort(guest.uuid)
        monkeypatch.setattr(guest.driver._live, "_job", no_answer)
        with pytest.raises(GuestFailed):
            call.result(30)
        monkeypatch.undo()


def test_a_hypervisor_that_hangs_is_abandoned_though_its_call_continues(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:

        def no_answer(_uuid: str) -> None:
            raise GuestFailed("The hypervisor did not answer.")

        with monkeypatch.context() as patched:
            patched.setattr(migration, "_STUCK_SECONDS", 3.0)
            patched.setattr(guest.driver._live, "_job", no_answer)
            with pytest.raises(GuestFailed, match=r"hypervisor hangs.*hard reboot the server"):
                call.result(30)


def test_connections_notice_that_the_target_is_gone(cloud: Cloud) -> None:
    """Else QEMU waits for good for the answer of one that died after it had received a request: see `dead_peers`."""
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]):
        (source, _target) = sorted(dead_peers.processes_of(guest.uuid))

        def connections() -> list[str]:
            command = ["nsenter", "-t", str(source), "-n", "ss", "-Htnpo", "state", "established"]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            return [line for line in said.splitlines() if f"pid={source}," in line]

        # One for the disk and one for the memory.
        wait_until(lambda: len([line for line in connections() if "timer:(keepalive" in line]) > 0)
        assert dead_peers.PeersOf(guest.uuid).watch() >= 2


def test_a_guest_runs_at_its_source_if_the_network_dies(cloud: Cloud, lab: Lab) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call, lab.network.cut_off("cell2-host1"):
        with pytest.raises(GuestFailed):
            # With the kernel's own patience of TCP, the guest would stand still for a quarter of an hour.
            call.result(100)
        assert_runs_on_at_the_source(guest)
    wait_until(lambda: cloud.drivers[1].presence(guest.uuid) is Presence.ABSENT)


def test_a_second_caller_joins_what_the_first_began_before_it_was_killed(
    cloud: Cloud, endpoints: dict[str, LibvirtEndpoint], tmp_path: Path
) -> None:
    guest = cloud.guest()
    source, target = cloud.drivers
    guest.config_drive = TICKING
    guest.spawn()
    before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    where = prepared(guest, target)
    orders = tmp_path / "orders"
    here = endpoints["cell1-host1"]
    given = (here.uri, source._instances_dir, here.control_uri, guest.spec(), where, SLOW)
    orders.write_bytes(pickle.dumps(given))
    script = (
        "import pickle, sys\n"
        "from causeway.virt.libvirt.driver import LibvirtDriver\n"
        "uri, instances, there, spec, where, options = pickle.load(open(sys.argv[1], 'rb'))\n"
        "driver = LibvirtDriver(uri, 'cell1-host1', instances, virt_type='qemu')\n"
        "driver.start()\n"
        "driver._live.settings.trust_emulator = True\n"
        "driver._live.settings.uri = there\n"
        "driver.live_migrate(spec, where, options, lambda progress: None)\n"
    )
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", script, str(orders)]) as first:
        wait_until(lambda: travels(guest))
        first.kill()
    assert travels(guest)

    seen: list[LiveProgress] = []

    def hurry(progress: LiveProgress) -> None:
        if not seen:
            source.force_live_migration(guest.uuid, post_copy=False)
        seen.append(progress)

    source.live_migrate(guest.spec(), where, LiveOptions(), hurry)
    assert seen[0].memory_processed
    assert source.presence(guest.uuid) is Presence.ABSENT
    assert target.presence(guest.uuid) is Presence.RUNNING
    guest.driver = target
    assert guest.wait(lambda said: "TICK id=" in said.text).last("TICK")["id"] == before["id"]


def migrated_until_it_runs_there(guest: Guest, where: LiveTarget, lab_dir: Path, uri: str) -> GuestFailed | None:
    """Kills the source's libvirtd as soon as the one at ``uri``, the target's, says that the guest runs there.

    Returns how the migration failed.
    """
    import libvirt

    died, failure = threading.Event(), None

    def kill(_connection: Any, domain: Any, event: int, detail: int, _opaque: object) -> None:
        resumed = (libvirt.VIR_DOMAIN_EVENT_RESUMED, libvirt.VIR_DOMAIN_EVENT_RESUMED_MIGRATED)
        if domain.UUIDString() == guest.uuid and (event, detail) == resumed and not died.is_set():
            os.kill(int((lab_dir / "hosts" / "cell1-host1" / "libvirtd.pid").read_text()), signal.SIGKILL)
            died.set()

    watcher = libvirt.open(uri)
    handle = watcher.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, kill, None)
    try:
        guest.driver.live_migrate(guest.spec(), where, LiveOptions(), no_word)
    except GuestFailed as raised:
        failure = raised
    finally:
        # The event of a migration that was quicker may still be on its way.
        assert died.wait(60)
        watcher.domainEventDeregisterAny(handle)
        watcher.close()
    return failure


def test_two_hosts_have_the_guest_and_the_one_that_handed_it_over_never_resumes_it(
    cloud: Cloud, lab_dir: Path, endpoints: dict[str, LibvirtEndpoint]
) -> None:
    """The source's libvirtd dies when the guest runs at the target already: it comes back with the guest paused."""
    source, target = cloud.drivers
    for _attempt in range(5):
        guest = cloud.guest()
        guest.config_drive = TICKING
        guest.spawn()
        before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
        where = prepared(guest, target)
        failure = migrated_until_it_runs_there(guest, where, lab_dir, endpoints["cell2-host1"].uri)
        # Nothing holds the moment: libvirtd may have heard from the target, and undefined the guest, before it was killed.
        if source.presence(guest.uuid) is not Presence.ABSENT:
            break
    else:
        pytest.fail("the source's libvirtd was never killed in time")
    assert isinstance(failure, GuestFailed)
    assert target.presence(guest.uuid) is Presence.RUNNING
    assert source.presence(guest.uuid) is Presence.PAUSED_FOR_MIGRATION
    assert source.live_progress(guest.uuid) is None
    for order in orders(guest, source):
        with pytest.raises(GuestFailed, match="on its way"):
            order()
    with pytest.raises(GuestFailed):
        source.live_migrate(guest.spec(), where, LiveOptions(), no_word)
    assert source.presence(guest.uuid) is Presence.PAUSED_FOR_MIGRATION
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    assert source.presence(guest.uuid) is Presence.ABSENT
    guest.driver = target
    assert guest.wait(lambda said: "TICK id=" in said.text).last("TICK")["id"] == before["id"]
