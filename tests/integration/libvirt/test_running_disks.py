"""A disk is copied while its guest runs, as it is at one instant."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu
import pytest

from causeway.errors import GuestFailed, WarmCopyImpossible
from causeway.model.image import ImageMeta
from causeway.model.states import PowerState
from causeway.virt.driver import RootDisk
from causeway.virt.libvirt import power
from causeway.virt.libvirt.guest_xml.domain_xml import agent_listens
from causeway.virt.libvirt.storage import backups
from tests.integration.libvirt.lab_guests import Cloud, Guest

BEGIN = backups._begin


def info(path: Path) -> dict[str, Any]:
    said = subprocess.run(["qemu-img", "info", "--output=json", str(path)], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def domain(guest: Guest) -> Any:
    return guest.driver._connection.call("find it", lambda hypervisor: power.find(hypervisor, guest.uuid))


def begin_slowly(hypervisor: Any, uuid: str, disk: Path, copy: Path) -> None:
    """As the driver begins a copy; but it would take years."""
    running = hypervisor.lookupByUUIDString(uuid)

    def ask(command: str, **arguments: Any) -> Any:
        text = json.dumps({"execute": command, "arguments": arguments} if arguments else {"execute": command})
        return json.loads(libvirt_qemu.qemuMonitorCommand(running, text, 0)).get("return")

    # A disk of this size takes seconds, although there is nothing on it: time enough to slow the job down.
    running.blockResize(str(disk), 2**39, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)
    BEGIN(hypervisor, uuid, disk, copy)
    for job in ask("query-block-jobs"):
        ask("block-job-set-speed", device=job["device"], speed=1)
    assert [job["status"] for job in ask("query-block-jobs")] == ["running"]


def exports(guest: Guest) -> list[Path]:
    return list(guest.driver._disks.directory.glob(f"export-{guest.uuid}-*"))


def test_a_guest_runs_on_while_its_disk_is_copied_and_the_copy_boots(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    marker = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")
    stopped: list[int] = []

    def note(_connection: Any, _domain: Any, event: int, _detail: int, _opaque: object) -> None:
        stopped.append(event)

    watch = (
        domain(guest).connect().domainEventRegisterAny(domain(guest), libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, note, None)
    )
    with guest.driver.export_running_disk(guest.instance, "disk") as export:
        assert guest.driver.inspect(guest.uuid).power_state == PowerState.RUNNING
        found = info(export.path)
        assert "backing-filename" not in found
        assert found["virtual-size"] == info(export.path)["virtual-size"] == 2**30
        assert export.size == export.path.stat().st_size
        received = tmp_path / "received"
        shutil.copy(export.path, received)
    domain(guest).connect().domainEventDeregisterAny(watch)
    assert stopped == []
    assert exports(guest) == []
    subprocess.run(["qemu-img", "check", "-q", str(received)], check=True)

    other = cloud.guest(host=1)
    other.driver.spawn(other.spec(RootDisk(None, None, snapshot=received, size_gb=1)))
    assert other.wait_for_boot().last("CAUSEWAY-MARKER", disk="vda")["first"] == marker["first"]


def test_a_copy_that_lost_its_caller_is_ended_by_the_next(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    left = guest.driver._disks.directory / f"export-{guest.uuid}-disk-left.qcow2"
    disk = guest.driver._disks.root(guest.uuid)
    guest.driver._connection.call("begin", lambda hypervisor: begin_slowly(hypervisor, guest.uuid, disk, left))
    with guest.driver.export_running_disk(guest.instance, "disk") as export:
        assert [path.name for path in exports(guest)] == [export.path.name]
    assert exports(guest) == []


def test_a_backup_that_somebody_else_makes_is_left_alone(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    guest.spawn()
    scratch, socket = tmp_path / "scratch", tmp_path / "socket"
    tmp_path.chmod(0o777)
    theirs = (
        f"<domainbackup mode='pull'><server transport='unix' socket='{socket}'/><disks>"
        f"<disk name='vda' backup='yes' type='file'><scratch file='{scratch}'/></disk></disks></domainbackup>"
    )
    domain(guest).backupBegin(theirs, None, 0)
    with (
        pytest.raises(GuestFailed, match="Somebody else makes a backup"),
        guest.driver.export_running_disk(guest.instance, "disk"),
    ):
        pass
    assert "pull" in domain(guest).backupGetXMLDesc()
    domain(guest).abortJob()


def test_a_copy_of_a_guest_that_stops_fails_and_is_cleaned(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = cloud.guest()
    guest.spawn()

    def begin_and_stop(hypervisor: Any, uuid: str, disk: Path, copy: Path) -> None:
        begin_slowly(hypervisor, uuid, disk, copy)
        hypervisor.lookupByUUIDString(uuid).destroy()

    monkeypatch.setattr(backups, "_begin", begin_and_stop)
    with pytest.raises(GuestFailed), guest.driver.export_running_disk(guest.instance, "disk"):
        pass
    assert exports(guest) == []
    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING


def test_a_copy_that_takes_too_long_is_ended(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = cloud.guest()
    guest.spawn()
    monkeypatch.setattr(guest.driver._disks, "timeout", -1.0)
    monkeypatch.setattr(backups, "_begin", begin_slowly)
    with (
        pytest.raises(GuestFailed, match="took longer"),
        guest.driver.export_running_disk(guest.instance, "disk"),
    ):
        pass
    look = partial(backups._target_of_job, uuid=guest.uuid)
    assert guest.driver._connection.call("look", look) is None
    assert exports(guest) == []


def test_the_agent_keeps_the_file_systems_still_at_the_instant_of_the_copy(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.instance.image_meta = ImageMeta("the-image", properties={"hw_qemu_guest_agent": "yes"})
    guest.spawn()
    guest.wait(lambda _said: agent_listens(domain(guest).XMLDesc()))
    with guest.driver.export_running_disk(guest.instance, "disk"):
        guest.wait(lambda said: "CAUSEWAY-AGENT frozen\nCAUSEWAY-AGENT thawed" in said.text)


def test_nothing_is_copied_that_should_stand_still_and_can_not(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.instance.image_meta = ImageMeta("the-image", properties={"os_require_quiesce": "yes"})
    guest.spawn()
    with (
        pytest.raises(WarmCopyImpossible, match="can't be kept still"),
        guest.driver.export_running_disk(guest.instance, "disk"),
    ):
        pass
