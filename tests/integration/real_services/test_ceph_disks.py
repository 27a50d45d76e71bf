"""Real guests whose disks are in a real Ceph: servers move, also to another cell, without a byte of their disks."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.processes.own_process import until
from tests.integration.real_services import ceph
from tests.integration.real_services.ceph_cloud import CephCloud, ceph_cloud
from tests.process_trees import stop

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]


@pytest.fixture(scope="module")
def running() -> Iterator[CephCloud]:
    if reason := ceph.missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-ceph-", ignore_cleanup_errors=True) as folder,
        ceph_cloud(Path(folder)) as cloud,
    ):
        yield cloud


@pytest.fixture
def cloud(running: CephCloud) -> Iterator[CephCloud]:
    yield running
    running.settle()
    running.clean()


def booted(cloud: CephCloud, *, anywhere: bool = False) -> Any:
    """A server in the first cell. ``anywhere``: it can go to any host with its flavor."""
    gen = None if anywhere else 1
    flavor = cloud.flavor(f"ceph.small.{gen}", gen=gen, ram=128, disk=1, ephemeral=1, swap=64)
    servers = (cloud.boot(flavor=flavor) for _attempt in range(4))
    return next(server for server in servers if cloud.host_of(server).startswith("cell1"))


def owners(cloud: CephCloud, server: Any) -> set[str]:
    return {owner.split(" ")[0] for owner, _snapshots in cloud.images(server).values()}


def test_a_server_is_resized_to_another_cell_and_back_with_the_disks_of_before(cloud: CephCloud) -> None:
    server = booted(cloud)
    before, source = cloud.said(server), cloud.host_of(server)
    names = sorted(cloud.images(server))
    assert names == [f"{server.id}_disk", f"{server.id}_disk.eph0", f"{server.id}_disk.swap"]
    assert owners(cloud, server) == {source}
    larger = cloud.flavor("ceph.larger", gen=2, ram=160, disk=2, ephemeral=1, swap=64)
    cloud.resized(server, larger)
    there = cloud.said(server, after_boot=before.boot)
    assert cloud.host_of(server)[:5] != source[:5]
    assert owners(cloud, server) == {cloud.host_of(server)}
    assert (there.first("vda"), there.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
    assert cloud.size_of(names[0]) == 2
    assert cloud.bytes_moved(server) == 0
    cloud.reverted(server)
    back = cloud.said(server, after_boot=before.boot)
    # What was written there is gone: this is the boot after the first one again.
    assert (back.boot, back.first("vda"), back.lines("vda")) == (2, before.first("vda"), before.lines("vda") + 1)
    assert cloud.host_of(server) == source and owners(cloud, server) == {source}
    assert cloud.size_of(names[0]) == 1
    assert all(not snapshots for _owner, snapshots in cloud.images(server).values())
    assert cloud.audit().is_clean


def test_a_confirm_keeps_the_disks_and_a_deleted_server_leaves_nothing(cloud: CephCloud) -> None:
    server = booted(cloud)
    before = cloud.said(server)
    for number, gen in enumerate((2, 2, 1)):
        cloud.resized(server, cloud.flavor(f"ceph.{number}", gen=gen, ram=136, disk=1, ephemeral=1, swap=64))
        cloud.confirmed(server)
        now = cloud.said(server, after_boot=before.boot + number)
        assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + number + 1)
    assert cloud.audit().is_clean
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.settle()
    assert cloud.images(server) == {}


@pytest.mark.parametrize("across", [False, True], ids=["inside", "across"])
def test_a_live_migration_sends_memory_only(cloud: CephCloud, across: bool) -> None:
    server = booted(cloud, anywhere=across)
    before, source = cloud.said(server), cloud.host_of(server)
    target = f"cell2-host{source[-1]}" if across else cloud.other(source)
    for here, there in ((source, target), (target, source)):
        assert cloud.migrated(server, host=there).compute_host == there, cloud.moves(server)[-1].error
        arrived = cloud.libvirt(there).live_arrival(server.id)
        assert arrived is not None and arrived.memory_processed > 0 and arrived.disk_total == 0
        assert owners(cloud, server) == {there}
        assert cloud.libvirt(here).list_disks().get(server.id) is None
        assert cloud.watchers(f"{server.id}_disk") == 1
    # It did not boot meanwhile: that would be the first boot after `before`.
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    now = cloud.said(server, after_boot=before.boot)
    assert (now.boot, now.first("vda")) == (before.boot + 1, before.first("vda"))
    assert cloud.audit().is_clean


def test_an_evacuated_server_keeps_its_disk_and_its_former_guest_can_not_write_any_more(cloud: CephCloud) -> None:
    """Its host is not off, as its operator believes, but stands still, and comes back with the guest."""
    server = booted(cloud)
    before, source = cloud.said(server), cloud.host_of(server)
    former = cloud.qemu(server, source)
    stop(former)
    with cloud.dead(source):
        cloud.admin.compute.evacuate_server(server.id, host=cloud.other(source))
        until(lambda: cloud.show(server), lambda found: found.task_state is None, "the evacuation to end", 240)
        assert cloud.host_of(server) == cloud.other(source), cloud.trace_of(server)
        if cloud.show(server).status == "SHUTOFF":
            cloud.member.compute.start_server(server.id)
            cloud.wait(server, "ACTIVE")
        now = cloud.said(server, after_boot=before.boot)
        assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
        assert owners(cloud, server) == {cloud.other(source)}
        os.kill(former, signal.SIGCONT)
        assert cloud.watchers(f"{server.id}_disk") == 1
        assert cloud.ceph.run("ceph", "osd", "blocklist", "ls").count("/") >= 1
    until(lambda: cloud.migration(server).status, lambda seen: seen == "completed", "the host to be clean", 120)
    assert owners(cloud, server) == {cloud.other(source)}
    assert cloud.watchers(f"{server.id}_disk") == 1
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    again = cloud.said(server, after_boot=now.boot)
    assert (again.first("vda"), again.lines("vda")) == (before.first("vda"), now.lines("vda") + 1)
    assert cloud.audit().is_clean


def test_an_image_of_a_running_server_has_its_disk(cloud: CephCloud) -> None:
    server = booted(cloud)
    before = cloud.said(server)
    image = cloud.member.compute.create_server_image(server, "copy", wait=True, timeout=200)
    cloud.settle()
    assert all(not snapshots for _owner, snapshots in cloud.images(server).values())
    other = cloud.boot("other", flavor="ceph.small.1", image_id=image.id)
    said = cloud.said(other, after_boot=before.boot)
    assert (said.first("vda"), said.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)


def test_a_server_is_rebuilt_and_rescued(cloud: CephCloud) -> None:
    server = booted(cloud)
    before = cloud.said(server)
    cloud.member.compute.rebuild_server(server, image=cloud.image_id)
    cloud.wait(server, "ACTIVE")
    anew = cloud.said(server)
    assert anew.boot == 1 and anew.first("vda") != before.first("vda")
    cloud.member.compute.rescue_server(server)
    cloud.wait(server, "RESCUE")
    cloud.member.compute.unrescue_server(server)
    cloud.wait(server, "ACTIVE")
    assert cloud.said(server, after_boot=1).first("vda") == anew.first("vda")
    assert sorted(cloud.images(server)) == [f"{server.id}_disk", f"{server.id}_disk.eph0", f"{server.id}_disk.swap"]


def test_a_server_whose_guest_was_killed_is_deleted_at_once(cloud: CephCloud) -> None:
    """A client that was killed is seen for half a minute: nothing can be deleted meanwhile, and nothing is left in the end."""
    server = booted(cloud)
    cloud.said(server)
    os.kill(cloud.qemu(server, cloud.host_of(server)), signal.SIGKILL)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, wait=180)
    cloud.settle()
    assert cloud.images(server) == {}


@pytest.mark.parametrize("what", ["storage", "monitor"])
def test_a_resize_waits_while_ceph_does_not_answer(cloud: CephCloud, what: str) -> None:
    server = booted(cloud)
    before = cloud.said(server)
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    larger = cloud.flavor("ceph.waits", gen=2, ram=160, disk=2, ephemeral=1, swap=64)
    if what == "storage":
        cloud.ceph.freeze()
    else:
        cloud.ceph.kill_monitor()
    try:
        cloud.member.compute.resize_server(server.id, larger)
        until(
            lambda: [move.error for move in cloud.moves(server)],
            lambda seen: seen[-1] is not None and seen[-1]["code"] in ("storage_unreachable", "rpc_timeout"),
            "the move to wait for Ceph",
            200,
        )
        assert cloud.show(server).task_state is not None
    finally:
        if what == "storage":
            cloud.ceph.thaw()
        else:
            cloud.ceph.start_monitor()
    until(lambda: cloud.show(server).status, lambda seen: seen != "RESIZE", "the resize to continue", 300)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.confirmed(server)
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    now = cloud.said(server, after_boot=before.boot)
    assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
    assert cloud.audit().is_clean
