"""Real guests between real services: QEMU under libvirt, Open vSwitch with Neutron's agents, Cinder, Glance."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from causeway.cli.demo.guest import GuestReport
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.watch import guest_report
from tests.functional.processes.deployment import CONDUCTORS
from tests.functional.processes.own_process import until
from tests.integration.real_services.audits import audit
from tests.integration.real_services.demo import run_story
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.test_main_job import bindings, volume_is
from tests.integration.real_services.writing_guests import (
    NUMBERS_SECTORS,
    check_sectors,
    file_of,
    sectors_written,
    writes_on,
)

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]

CELLS = {"cell1": ["cell1-host1"], "cell2": ["cell2-host1"]}
CUT_SECONDS = 60
# Cinder's, each with a type of volumes of its name.
STORAGE = HERE, THERE = ("nfs", "other")
# Guests are emulated, and a cut is noticed late.
PATIENCE = 400


@pytest.fixture(scope="module", params=["mariadb"])
def running(request: pytest.FixtureRequest) -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS, database=request.param, storage=STORAGE) as cloud:
        for name in STORAGE:
            cloud.admin.block_storage.create_type(name=name, extra_specs={"volume_backend_name": name})
        yield cloud


@pytest.fixture
def cloud(running: GuestCloud) -> Iterator[GuestCloud]:
    yield running
    running.delete_all()


def report(cloud: GuestCloud, server: Any, after_boot: int = 0) -> GuestReport:
    return guest_report(cloud.admin.compute, server.id, after_boot)


def booted(cloud: GuestCloud) -> tuple[Any, Any]:
    """A server in cell1 whose guest has written to its disk and to a volume."""
    volume = cloud.member.block_storage.create_volume(size=1, name="data")
    cloud.member.block_storage.wait_for_status(volume, "available", wait=60)
    server = cloud.boot()
    cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    volume_is(cloud, volume, "in-use")
    # The guest looks for new disks once a second, and says what it wrote to them.
    until(lambda: report(cloud, server).lines("vdb"), lambda lines: lines == 1, "the guest to mark the volume")
    return server, volume


def ended(cloud: GuestCloud, server: Any, *statuses: str) -> Any:
    """The server when its move is over, however long it took."""
    good = (*statuses, "ERROR")
    found = until(
        lambda: cloud.show(server),
        lambda found: found.status in good and found.task_state is None,
        f"server {server.id} to become {' or '.join(statuses)}",
        PATIENCE,
    )
    assert found.status in statuses, found.fault
    return found


def answers(cloud: GuestCloud, server: Any, *, off: str = "") -> None:
    """From each host but one that is ``off``, through both hosts' switches."""
    (address,) = [each["addr"] for each in cloud.show(server).addresses["network"]]
    for host in cloud.hosts.keys() - {off}:
        try:
            until(
                partial(cloud.services.switches.ping, host, cloud.admin, cloud.network, address),
                lambda result: result.answered,
                f"{address} to answer {host}",
            )
        except AssertionError as error:
            # What the guest's own host lets through, the other one doesn't know.
            for each in cloud.hosts:
                error.add_note(cloud.services.switches.state(each))
            raise


def hosts_with_shares(cloud: GuestCloud) -> set[str]:
    """The hosts that have a share with volumes mounted, as their computes' kernel says."""
    found = set()
    for host in cloud.hosts:
        mounts = Path(f"/proc/{cloud.processes[host].pid}/mountinfo").read_text().splitlines()
        if any("/instances/mnt/" in line.split()[4] and f"/{host}/" in line.split()[4] for line in mounts):
            found.add(host)
    return found


def is_whole(cloud: GuestCloud, server: Any, volume: Any) -> None:
    """Runs where the records say, once; its port and its volume are there and nowhere else; nobody disagrees."""
    cloud.settle()
    host = cloud.show(server).compute_host
    assert cloud.running_on(server) == [host]
    # A live migration that was rolled back leaves the port down until the agent has looked at it again.
    (port,) = cloud.admin.network.ports(device_id=server.id)
    until(partial(cloud.services.switches.wires, host, cloud.admin, port.id), bool, f"port {port.id} to be wired")
    assert bindings(cloud, server) == {host: "ACTIVE"}
    (attachment,) = cloud.admin.block_storage.get_volume(volume.id).attachments
    assert attachment["host_name"] == host
    assert hosts_with_shares(cloud) == {host}
    assert audit(cloud) == []
    answers(cloud, server)


def test_a_guest_goes_to_the_other_cell_with_its_disk_its_volume_and_its_address(cloud: GuestCloud) -> None:
    server, volume = booted(cloud)
    source, before = cloud.show(server).compute_host, report(cloud, server)
    answers(cloud, server)

    cloud.member.compute.resize_server(server, "large")
    found = ended(cloud, server, "VERIFY_RESIZE")

    assert cloud.hosts[found.compute_host] != cloud.hosts[source]
    now = report(cloud, server, after_boot=before.boot)
    assert (now.mac, now.ip) == (before.mac, before.ip)
    assert now.vcpus == 2
    for disk in ("vda", "vdb"):
        assert (now.first(disk), now.lines(disk)) == (before.first(disk), before.lines(disk) + 1)
    answers(cloud, server)
    cloud.member.compute.confirm_server_resize(server.id)
    ended(cloud, server, "ACTIVE")
    is_whole(cloud, server, volume)


def test_a_guest_comes_back_to_the_disk_that_it_left_when_it_is_reverted(cloud: GuestCloud) -> None:
    server, volume = booted(cloud)
    source, before = cloud.show(server).compute_host, report(cloud, server)
    cloud.member.compute.resize_server(server, "large")
    ended(cloud, server, "VERIFY_RESIZE")
    away = report(cloud, server, after_boot=before.boot)

    cloud.member.compute.revert_server_resize(server.id)
    found = ended(cloud, server, "ACTIVE")

    assert found.compute_host == source
    now = report(cloud, server, after_boot=before.boot)
    assert (now.mac, now.ip, now.vcpus) == (before.mac, before.ip, 1)
    assert (now.first("vda"), now.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
    assert (now.first("vdb"), now.lines("vdb")) == (before.first("vdb"), away.lines("vdb") + 1)
    is_whole(cloud, server, volume)


@pytest.mark.parametrize(
    ("point", "cut"),
    [
        ("compute.prep_snapshot_based_resize_at_source.in", "source"),
        ("compute.finish_snapshot_based_resize_at_dest.in", "target"),
    ],
)
def test_a_host_that_is_cut_off_for_a_minute_in_the_middle_of_a_move_loses_no_server(
    cloud: GuestCloud, point: str, cut: str
) -> None:
    server, volume = booted(cloud)
    source, before = cloud.show(server).compute_host, report(cloud, server)
    target = next(host for host in cloud.hosts if host != source)
    victim = source if cut == "source" else target
    cloud.fault(point, delay=5)
    cloud.member.compute.resize_server(server, "large")
    assert cloud.hit(point)["host"] == victim

    cloud.machines.cut_off(victim, CUT_SECONDS)

    found = ended(cloud, server, "VERIFY_RESIZE", "ACTIVE")
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vda"), now.first("vdb")) == (before.first("vda"), before.first("vdb"))
    if found.status == "VERIFY_RESIZE":
        cloud.settle()
        cloud.member.compute.revert_server_resize(server.id)
        found = ended(cloud, server, "ACTIVE")
    assert found.compute_host == source
    is_whole(cloud, server, volume)


def writing(cloud: GuestCloud) -> tuple[Any, Any]:
    """A server, and its volume to which its guest writes without an end."""
    volume = cloud.member.block_storage.create_volume(size=1, name="data", volume_type=HERE)
    cloud.member.block_storage.wait_for_status(volume, "available", wait=60)
    server = cloud.boot(config_drive=True, user_data=b64encode(NUMBERS_SECTORS.encode()).decode())
    cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
    volume_is(cloud, volume, "in-use")
    until(lambda: report(cloud, server).lines("vdb"), lambda lines: lines == 1, "the guest to mark the volume")
    writes_on(cloud, server)
    return server, volume


def stopped(cloud: GuestCloud, server: Any) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")


def moved_to_the_other_cell(cloud: GuestCloud, server: Any) -> None:
    source = cloud.show(server).compute_host
    cloud.admin.compute.migrate_server(server)
    ended(cloud, server, "VERIFY_RESIZE")
    cloud.member.compute.confirm_server_resize(server.id)
    found = ended(cloud, server, "ACTIVE")
    assert cloud.hosts[found.compute_host] != cloud.hosts[source]


def deleted(cloud: GuestCloud, snapshot: Any) -> None:
    cloud.member.block_storage.delete_snapshot(snapshot)
    cloud.member.block_storage.wait_for_delete(snapshot, wait=120)


def test_cinder_moves_a_volume_to_other_storage_and_then_the_server_moves(cloud: GuestCloud, tmp_path: Path) -> None:
    server, volume = writing(cloud)
    before, old = report(cloud, server), file_of(cloud, server)
    assert old.parent == cloud.services.export(HERE)

    cloud.member.block_storage.retype_volume(volume, THERE, migration_policy="on-demand")
    found = until(
        lambda: cloud.admin.block_storage.get_volume(volume.id),
        lambda found: found.status == "in-use" and found.migration_status in (None, "success", "error"),
        "the volume to be where its type says",
        PATIENCE,
    )
    assert (found.volume_type, found.host.partition("@")[2].partition("#")[0]) == (THERE, THERE)
    ended(cloud, server, "ACTIVE")
    new = file_of(cloud, server)
    assert (new.parent, old.exists()) == (cloud.services.export(THERE), False)
    writes_on(cloud, server)
    is_whole(cloud, server, volume)
    stopped(cloud, server)
    check_sectors(new, sectors_written(cloud, server), tmp_path)

    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    report(cloud, server, after_boot=before.boot)
    moved_to_the_other_cell(cloud, server)
    now = report(cloud, server, after_boot=before.boot + 1)
    assert (now.first("vdb"), now.lines("vdb")) == (before.first("vdb"), before.lines("vdb") + 2)
    is_whole(cloud, server, volume)


def test_cinder_takes_snapshots_and_deletes_them_on_either_side_of_a_move(cloud: GuestCloud, tmp_path: Path) -> None:
    server, volume = writing(cloud)
    before, storage = report(cloud, server), cloud.member.block_storage
    snapshots = []
    for name in ("first", "second", "third"):
        written = writes_on(cloud, server)
        taken = storage.create_snapshot(volume_id=volume.id, name=name, force=True)
        storage.wait_for_status(taken, "available", wait=120)
        # The guest writes to a file that is named after the newest snapshot; those before it lie below.
        assert file_of(cloud, server).name == f"volume-{volume.id}.{taken.id}"
        snapshots.append((taken, written))
    first, second, third = (taken for taken, _written in snapshots)

    copy = storage.create_volume(size=1, name="copy", snapshot_id=second.id, volume_type=HERE)
    storage.wait_for_status(copy, "available", wait=120)
    check_sectors(cloud.services.export(HERE) / f"volume-{copy.id}", snapshots[1][1], tmp_path)
    deleted(cloud, second)
    stopped(cloud, server)
    last = sectors_written(cloud, server)
    check_sectors(cloud.services.export(HERE) / f"volume-{volume.id}.{third.id}", last, tmp_path)
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    report(cloud, server, after_boot=before.boot)

    moved_to_the_other_cell(cloud, server)
    report(cloud, server, after_boot=before.boot + 1)
    for taken in (third, first):
        writes_on(cloud, server)
        deleted(cloud, taken)
    writes_on(cloud, server)
    is_whole(cloud, server, volume)
    file = file_of(cloud, server)
    # Beside the one file that is left, Cinder keeps a list of the files.
    left = {path.name for path in file.parent.glob(f"volume-{volume.id}*")}
    assert left == {file.name, f"volume-{volume.id}.info"}
    stopped(cloud, server)
    check_sectors(file, sectors_written(cloud, server), tmp_path)


def test_an_attachment_that_is_refreshed_connects_the_volume_again(cloud: GuestCloud, tmp_path: Path) -> None:
    server, volume = writing(cloud)
    before, host = report(cloud, server), cloud.show(server).compute_host
    (old,) = cloud.admin.block_storage.get_volume(volume.id).attachments
    stopped(cloud, server)
    last, connector = sectors_written(cloud, server), tmp_path / "connector.json"
    options = [f"--config-file={path}" for path in cloud.files_of(host)]
    connector.write_text(cloud.manage("volume-attachment", "get-connector", "--json", *options, on=host))
    assert json.loads(connector.read_text())["host"] == host

    options = [f"--config-file={path}" for path in cloud.files_of(CONDUCTORS[0])]
    cloud.manage("volume-attachment", "refresh", *options, server.id, volume.id, str(connector))

    (new,) = cloud.admin.block_storage.get_volume(volume.id).attachments
    assert (new["host_name"], new["server_id"]) == (host, server.id)
    assert new["attachment_id"] != old["attachment_id"]
    check_sectors(cloud.services.export(HERE) / f"volume-{volume.id}", last, tmp_path)
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vdb"), now.lines("vdb")) == (before.first("vdb"), before.lines("vdb") + 1)
    is_whole(cloud, server, volume)


def test_every_check_of_the_demonstration_holds_beside_the_real_services(cloud: GuestCloud) -> None:
    reported = io.StringIO()
    screen = Screen(Console(file=reported, highlight=False, soft_wrap=True))

    run_story(cloud, screen)

    assert screen.failed == [], reported.getvalue()
    assert reported.getvalue().count("it answers ping on") == 9
    assert screen.held > 80
