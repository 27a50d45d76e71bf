"""Volumes of real guests that the real Cinder moves, and takes snapshots of, while the guests write to them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.virt.libvirt.commands import run
from tests.functional.processes.deployment import CONDUCTORS, until
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.test_main_job import volume_is
from tests.integration.real_services.test_real_guests import CELLS, PATIENCE, ended, is_whole, report

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]

STORAGE = HERE, THERE = ("nfs", "other")
# A program of the guest that numbers sectors of its volume, one after the other, and says so when each is written.
FIRST_SECTOR, SECTOR = 2048, 512
NUMBERS_SECTORS = f"""#!/bin/sh
until [ -b /dev/vdb ]; do sleep 0.2; done
(n=0; while sleep 0.3; do
    echo "sector $n" | dd of=/dev/vdb bs={SECTOR} seek=$(({FIRST_SECTOR}+n)) conv=sync,fsync 2>/dev/null && echo WROTE n=$n
    n=$((n+1))
done) > /dev/console &
"""


@pytest.fixture(scope="module")
def running() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS, storage=STORAGE) as cloud:
        for name in STORAGE:
            cloud.admin.block_storage.create_type(name=name, extra_specs={"volume_backend_name": name})
        yield cloud


@pytest.fixture
def cloud(running: GuestCloud) -> Iterator[GuestCloud]:
    yield running
    running.delete_all()


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


def sectors_written(cloud: GuestCloud, server: Any) -> int:
    """How many the guest says that it has written since its latest boot."""
    said = cloud.member.compute.get_server_console_output(server.id)["output"].rpartition("CAUSEWAY-GUEST ")[2]
    numbers = re.findall(r"WROTE n=(\d+)", said)
    return int(numbers[-1]) + 1 if numbers else 0


def writes_on(cloud: GuestCloud, server: Any) -> int:
    """Waits until the guest has written more. Returns how many sectors it had written before."""
    before = sectors_written(cloud, server)
    until(lambda: sectors_written(cloud, server), lambda now: now > before, "the guest to write on")
    return before


def file_of(cloud: GuestCloud, server: Any) -> Path:
    """The file of the volume in the running guest, in the directory that its storage exports."""
    (disk,) = [disk for disk in re.findall(r"<disk .*?</disk>", cloud.definition(server), re.S) if "'vdb'" in disk]
    name = Path(re.findall(r"<source file='([^']+)'", disk)[0]).name
    (found,) = [path for storage in STORAGE for path in cloud.services.export(storage).glob(name)]
    return found


def check_sectors(file: Path, number: int, directory: Path) -> None:
    """The first ``number`` sectors of the guest are in the volume, whatever files it consists of."""
    raw = directory / "content"
    run("qemu-img", "convert", "-O", "raw", file, raw, timeout=120)
    with raw.open("rb") as content:
        content.seek(FIRST_SECTOR * SECTOR)
        found = [content.read(SECTOR).rstrip(b"\0").decode() for _sector in range(number)]
    raw.unlink()
    assert found == [f"sector {each}\n" for each in range(number)]


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


def deleted(cloud: GuestCloud, snapshot: Any) -> None:
    cloud.member.block_storage.delete_snapshot(snapshot)
    cloud.member.block_storage.wait_for_delete(snapshot, wait=120)


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
