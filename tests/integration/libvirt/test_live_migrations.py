"""A guest goes to another host of the lab without stopping."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from causeway.errors import ClaimRefused, GuestFailed, HostUnreachable, ImageRefused
from causeway.model.image import ImageMeta
from causeway.virt.driver import LocalDisk, RootDisk
from causeway.virt.lab.hosts import Lab, LibvirtEndpoint, missing
from causeway.virt.libvirt.commands import run
from causeway.virt.live_guest import LiveOptions, LiveProgress, Presence
from tests.integration.libvirt.lab_guests import Cloud, Guest, Net, image_lines
from tests.integration.libvirt.lab_journeys import (
    SLOW,
    TICKING,
    assert_runs_on_at_the_source,
    no_word,
    orders,
    prepared,
    runs_on,
    travels,
    under_way,
    wait_until,
)

if missing() is None:
    import libvirt
    import libvirt_qemu

    from causeway.virt.libvirt import power
    from causeway.virt.libvirt.driver import LibvirtDriver
    from causeway.virt.libvirt.guest_xml.smbios import Serial

pytestmark = pytest.mark.timeout(240)


def test_a_guest_goes_to_another_host_and_does_not_notice(
    cloud: Cloud, network: Net, endpoints: dict[str, LibvirtEndpoint]
) -> None:
    guest = cloud.guest(vifs=[network.port()])
    guest.volumes.append(cloud.volume(guest))
    guest.config_drive = TICKING
    marker = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")["first"]
    before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    source, target = cloud.drivers

    where = prepared(guest, target)
    assert where.address == endpoints["cell2-host1"].address
    source.live_migrate(guest.spec(), where, LiveOptions(), no_word)

    assert source.presence(guest.uuid) is Presence.ABSENT
    assert target.presence(guest.uuid) is Presence.RUNNING
    # A fast host is done before the source is first asked; the target knows what came.
    came = target.live_arrival(guest.uuid)
    assert came is not None and came.memory_processed > 0
    assert came.memory_remaining == 0
    assert target.live_arrival(guest.uuid) == came
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    assert not source._disks.folder(guest.uuid).exists()
    guest.driver = target
    after = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    assert after["id"] == before["id"]
    assert guest.console().boots == 0
    assert network.lab.network.ping(network.id, guest.vifs[0].fixed_ips[0].address).received
    # The definition for the next start is this host's.
    target.power_off(guest.uuid, timeout=60)
    assert target.power_on(guest.spec())
    again = guest.wait_for_boot()
    assert again.last("CAUSEWAY-GUEST")["boot"] == "2"
    assert again.last("CAUSEWAY-MARKER", disk="vda")["first"] == marker
    # One line by each boot: the volume was the same one all the time.
    assert len(image_lines(cloud.path_of(guest.volumes[0]))) == 2


def test_the_firmware_of_a_migrated_guest_still_says_what_it_said(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where hosts give their own numbers to guests: a running guest has read the one of the host where it was started."""
    for number, driver in enumerate(cloud.drivers):
        monkeypatch.setattr(driver, "_serial", Serial.OS)
        monkeypatch.setattr(driver, "_host_serial", f"host-{number}")
    guest = cloud.guest()
    guest.spawn()
    source, target = cloud.drivers
    source.live_migrate(guest.spec(), prepared(guest, target), LiveOptions(), no_word)
    guest.driver = target
    assert "<entry name='serial'>host-0</entry>" in definition(target, guest)
    target.power_off(guest.uuid, timeout=60)
    assert target.power_on(guest.spec())
    assert "<entry name='serial'>host-1</entry>" in definition(target, guest)


def definition(driver: LibvirtDriver, guest: Guest) -> str:
    return str(driver._connection.call("describe a guest", lambda to: power.find(to, guest.uuid).XMLDesc()))


def test_the_agent_in_the_guest_answers_at_the_target(cloud: Cloud) -> None:
    """Its channel's socket is each host's own."""
    guest = cloud.guest()
    guest.instance.image_meta = ImageMeta("the-image", properties={"hw_qemu_guest_agent": "yes"})
    guest.spawn()
    source, target = cloud.drivers
    source.live_migrate(guest.spec(), prepared(guest, target), LiveOptions(), no_word)
    source.destroy(guest.uuid, [], [], destroy_disks=True)
    guest.driver = target
    agent = target._rounds._agent
    guest.wait(lambda _said: agent._freeze(guest.uuid) == "")
    assert agent.try_to_thaw(guest.uuid)
    guest.wait(lambda said: "CAUSEWAY-AGENT frozen\nCAUSEWAY-AGENT thawed" in said.text)


def test_an_emulated_guest_stands_still_while_its_memory_travels_and_not_while_its_disks_do(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU before 9.0 misses what such a guest writes meanwhile, and its kernel may crash at the target."""
    guest = cloud.guest()
    guest.config_drive = TICKING
    guest.spawn()
    before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    source, target = cloud.drivers
    seen: list[tuple[Presence, LiveProgress]] = []

    def look(progress: LiveProgress) -> None:
        seen.append((source.presence(guest.uuid), progress))

    hurry = source._live._hurry

    def look_and_hurry(uuid: str) -> None:
        """A fast host sends all of the rest between two looks."""
        wait_until(lambda: travels(guest))
        progress = source.live_progress(uuid)
        assert progress is not None
        look(progress)
        hurry(uuid)

    monkeypatch.setattr(source._live, "_hurry", look_and_hurry)
    # So slow that it takes a minute, if nobody hurries when the guest stands still.
    source.live_migrate(guest.spec(), prepared(guest, target), SLOW, look)
    sent = max(progress.memory_processed for _presence, progress in seen)
    assert sent > 0
    # The source was last asked before the end; the target has counted everything.
    came = target.live_arrival(guest.uuid)
    assert came is not None and came.memory_processed >= sent
    assert all(progress.stands_still for _presence, progress in seen if progress.memory_processed)
    assert not any(progress.memory_processed for presence, progress in seen if presence is Presence.RUNNING)
    assert not any(progress.disk_remaining for _presence, progress in seen if progress.stands_still)
    guest.driver = target
    after = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    assert after["id"] == before["id"] and guest.console().boots == 0


class Abandoned(Exception):
    """What a caller's progress raises."""


def test_a_migration_that_its_caller_abandons_leaves_the_guest_running_and_may_be_tried_again(cloud: Cloud) -> None:
    guest = cloud.guest()
    source, target = cloud.drivers
    guest.config_drive = TICKING
    guest.spawn()
    guest.wait(lambda said: "TICK id=" in said.text)

    def abandon(progress: LiveProgress) -> None:
        if progress.memory_processed:
            assert progress.memory_remaining and progress.memory_total
            raise Abandoned

    with pytest.raises(Abandoned), runs_on(source):
        source.live_migrate(guest.spec(), prepared(guest, target), SLOW, abandon)
    assert_runs_on_at_the_source(guest)
    assert target.presence(guest.uuid) is Presence.ABSENT

    # What the attempt left at the target is made anew.
    source.live_migrate(guest.spec(), prepared(guest, target), LiveOptions(), no_word)
    assert target.presence(guest.uuid) is Presence.RUNNING
    # Somebody's word to abort it, or to hurry, comes too late.
    source.abort_live_migration(guest.uuid)
    with pytest.raises(GuestFailed, match="No live migration"):
        source.force_live_migration(guest.uuid, post_copy=False)


def test_a_guest_runs_at_its_source_after_an_abort(cloud: Cloud) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        assert guest.driver.presence(guest.uuid) is Presence.RUNNING
        assert cloud.drivers[1].presence(guest.uuid) is Presence.INCOMING
        guest.driver.abort_live_migration(guest.uuid)
        assert guest.driver.live_progress(guest.uuid) is None
        with pytest.raises(GuestFailed):
            call.result(30)
    assert_runs_on_at_the_source(guest)


def test_a_guest_that_stood_still_for_its_migration_continues_by_itself_when_that_is_aborted(cloud: Cloud) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        # What forcing does, without the rest of it: the guest would be gone too soon.
        guest.driver._connection.call("stop", lambda hypervisor: power.find(hypervisor, guest.uuid).suspend())
        assert guest.driver.presence(guest.uuid) is Presence.PAUSED_FOR_MIGRATION
        for order in orders(guest, guest.driver):
            with pytest.raises(GuestFailed, match="on its way"):
                order()
        guest.driver.force_live_migration(guest.uuid, post_copy=True)
        guest.driver.abort_live_migration(guest.uuid)
        with pytest.raises(GuestFailed):
            call.result(30)
    assert_runs_on_at_the_source(guest)


def test_local_disks_go_along(cloud: Cloud) -> None:
    guest = cloud.guest()
    local = [LocalDisk("disk.eph0", "/dev/vdb", 64, label="ephemeral0"), LocalDisk("disk.swap", "/dev/vdc", 32)]
    source, target = cloud.drivers
    source.spawn(replace(guest.spec(guest.new_disk()), local_disks=local))
    guest.wait_for_boot()
    said = source.live_source(guest.instance)
    assert {(disk.name, disk.size, disk.base_image_id) for disk in said.disks} == {
        ("disk", 2**30, "the-image"),
        ("disk.eph0", 64 * 2**20, None),
        ("disk.swap", 32 * 2**20, None),
    }
    spec = replace(guest.spec(guest.new_disk()), local_disks=local)
    where = target.prepare_live_target(spec, said)
    with pytest.raises(GuestFailed, match="local disks"):
        source.live_migrate(spec, where, LiveOptions(block_migration=False), no_word)
    source.live_migrate(spec, where, LiveOptions(), no_word)
    for disk in ("disk.eph0", "disk.swap"):
        run(
            "qemu-img",
            "compare",
            "-U",
            source._disks.folder(guest.uuid) / disk,
            target._disks.folder(guest.uuid) / disk,
        )
    assert target.presence(guest.uuid) is Presence.RUNNING
    # It may continue, and back, from there.
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    back = source.prepare_live_target(spec, target.live_source(guest.instance))
    target.live_migrate(spec, back, LiveOptions(), no_word)
    assert source.presence(guest.uuid) is Presence.RUNNING


def test_a_guest_without_local_disks_takes_nothing_but_its_memory_along(cloud: Cloud) -> None:
    guest = cloud.guest()
    root = cloud.volume(guest, "/dev/vda")
    root.boot_index = 0
    run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", cloud.image.path, cloud.path_of(root))
    guest.volumes.append(root)
    guest.config_drive = TICKING
    source, target = cloud.drivers
    source.spawn(guest.spec())
    before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    said = source.live_source(guest.instance)
    assert said.disks == []
    where = target.prepare_live_target(guest.spec(), said)
    source.live_migrate(guest.spec(), where, LiveOptions(), no_word)
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    guest.driver = target
    after = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    assert after["id"] == before["id"] and int(after["n"]) > int(before["n"])


def test_a_guest_that_comes_in_is_let_alone_and_may_be_destroyed(cloud: Cloud) -> None:
    guest = cloud.guest()
    target = cloud.drivers[1]
    with under_way(guest, target) as call:
        for order in orders(guest, target):
            with pytest.raises(GuestFailed, match="on its way"):
                order()
        # Asked once more meanwhile: nothing is made anew under the guest.
        prepared(guest, target)
        assert target.presence(guest.uuid) is Presence.INCOMING
        target.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
        with pytest.raises(GuestFailed):
            call.result(30)
    assert_runs_on_at_the_source(guest)
    assert not target._disks.folder(guest.uuid).exists()


def test_a_migration_that_two_ask_for_at_once_happens_once(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    where = prepared(guest, cloud.drivers[1])
    with ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(guest.driver.live_migrate, guest.spec(), where, LiveOptions(bandwidth=20), no_word)
            for _ in range(2)
        ]
        for call in calls:
            call.result(100)
    assert guest.driver.presence(guest.uuid) is Presence.ABSENT
    assert cloud.drivers[1].presence(guest.uuid) is Presence.RUNNING


def test_the_limit_of_a_live_migration_changes_while_memory_travels(cloud: Cloud) -> None:
    """As a drain limits it. QEMU itself says which limit it keeps."""
    guest = cloud.guest()

    def limit() -> int | None:
        """None: the guest has left."""

        def ask(hypervisor: Any) -> str | None:
            command = json.dumps({"execute": "query-migrate-parameters"})
            try:
                return str(libvirt_qemu.qemuMonitorCommand(hypervisor.lookupByUUIDString(guest.uuid), command, 0))
            except libvirt.libvirtError as error:
                if error.get_error_code() in (libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID):
                    return None
                raise

        said = guest.driver._connection.call("ask QEMU", ask)
        return None if said is None else int(json.loads(said)["return"]["max-bandwidth"])

    with under_way(guest, cloud.drivers[1]) as call:
        assert limit() == SLOW.bandwidth * 2**20
        guest.driver.limit_live_migration(guest.uuid, 3.0 * 2**20)
        assert limit() == 3 * 2**20
        # Never none, however small its share is.
        guest.driver.limit_live_migration(guest.uuid, 1000.0)
        assert limit() == 2**20
        guest.driver.limit_live_migration(guest.uuid, 0.0)
        lifted = limit()
        # A fast host sends the rest before it can be asked; with a limit that would take a minute.
        assert lifted is None or lifted > 10**11
        call.result(60)
    assert cloud.drivers[1].presence(guest.uuid) is Presence.RUNNING


def test_a_guest_goes_at_once_by_post_copy(cloud: Cloud) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1], replace(SLOW, post_copy=True)) as call:
        before = guest.console().last("TICK")
        guest.driver.force_live_migration(guest.uuid, post_copy=True)
        call.result(60)
    guest.driver = cloud.drivers[1]
    assert guest.driver.presence(guest.uuid) is Presence.RUNNING
    assert guest.wait(lambda said: "TICK id=" in said.text).last("TICK")["id"] == before["id"]


def test_a_guest_goes_at_once_by_standing_still_where_post_copy_was_not_allowed(cloud: Cloud) -> None:
    guest = cloud.guest()
    with under_way(guest, cloud.drivers[1]) as call:
        before = guest.console().last("TICK")
        guest.driver.force_live_migration(guest.uuid, post_copy=True)
        call.result(60)
    guest.driver = cloud.drivers[1]
    assert guest.driver.presence(guest.uuid) is Presence.RUNNING
    assert guest.wait(lambda said: "TICK id=" in said.text).last("TICK")["id"] == before["id"]


def test_a_paused_guest_arrives_paused(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    guest.driver.pause(guest.uuid)
    assert guest.driver.presence(guest.uuid) is Presence.PAUSED
    guest.driver.live_migrate(guest.spec(), prepared(guest, cloud.drivers[1]), LiveOptions(post_copy=True), no_word)
    target = cloud.drivers[1]
    assert target.presence(guest.uuid) is Presence.PAUSED
    target.unpause(guest.uuid)
    assert target.presence(guest.uuid) is Presence.RUNNING


def test_disks_that_are_somebodys_are_not_made_anew(cloud: Cloud) -> None:
    guest = cloud.guest()
    source, target = cloud.drivers
    guest.spawn()
    said = source.live_source(guest.instance)
    source.live_migrate(guest.spec(), prepared(guest, target), LiveOptions(), no_word)
    target.power_off(guest.uuid, 0)
    disk = target._disks.root(guest.uuid)
    content = disk.read_bytes()
    # The order to make ready comes once more, late.
    with pytest.raises(GuestFailed, match="nothing is written over them"):
        target.prepare_live_target(guest.spec(guest.new_disk()), said)
    target.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=False)
    with pytest.raises(GuestFailed, match="nothing is written over them"):
        target.prepare_live_target(guest.spec(guest.new_disk()), said)
    assert disk.read_bytes() == content


def test_a_target_without_the_base_image_refuses_and_keeps_nothing(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    source, target = cloud.drivers
    said = source.live_source(guest.instance)
    assert [(disk.name, disk.size, disk.base_image_id) for disk in said.disks] == [("disk", 2**30, "the-image")]
    for root in (None, RootDisk(guest.base, "another-image", size_gb=1)):
        with pytest.raises((GuestFailed, ImageRefused), match=r"image|does not have"):
            target.prepare_live_target(guest.spec(root), said)
        assert not target._disks.folder(guest.uuid).exists()


def test_whether_one_hypervisor_reaches_another_is_tried(cloud: Cloud, lab: Lab) -> None:
    source, target = cloud.drivers
    there = target.live_address()
    source.try_live_address(there)
    with lab.network.hypervisors_apart("cell1-host1"), pytest.raises(HostUnreachable, match="can't be reached"):
        source.try_live_address(there)
    with pytest.raises(HostUnreachable):
        source.try_live_address(replace(there, address="10.255.255.1"))


def test_what_a_host_can_not_receive(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    source, target = cloud.drivers
    said = source.live_source(guest.instance)
    target.check_live_target(said)
    for other in (
        replace(said, hypervisor_type="Another"),
        replace(said, hypervisor_version=said.hypervisor_version + 1),
        replace(said, disk_bytes=2**60),
        replace(said, details=said.details | {"virt_type": "kvm"}),
        replace(said, details=said.details | {"machine": "pc-i440fx-99.1"}),
    ):
        with pytest.raises(ClaimRefused):
            target.check_live_target(other)
    settings = target._live.settings
    target._live.settings = replace(settings, address="127.0.0.1", uri="qemu+tcp://%s:1/system", reachable_here=True)
    try:
        with pytest.raises(ClaimRefused, match="reached"):
            target.check_live_target(said)
    finally:
        target._live.settings = settings
    source.power_off(guest.uuid, 0)
    with pytest.raises(GuestFailed, match="does not run"):
        source.live_source(guest.instance)
