"""What users do to a running Debian: images, consoles, a crash dump, a shutdown, a rescue."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from causeway.virt.libvirt.commands import run
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.console_socket import Console
from tests.functional.servers.moves_cloud import until
from tests.integration.operating_system.debian_image import ROOT_START
from tests.integration.operating_system.debian_servers import FROZEN, TOLERANCE, Debian, Debians, check_clock
from tests.integration.operating_system.load import USER_DATA, check_it_writes


@pytest.fixture(scope="module")
def debian(debians: Debians) -> Debian:
    return debians.booted("daily", user_data=USER_DATA)


def test_an_image_of_a_busy_guest_has_a_file_system_that_stood_still(
    cloud: AuditedCloud, debian: Debian, tmp_path: Path
) -> None:
    check_it_writes(debian)
    image = cloud.member.compute.create_server_image(debian.server.id, "still")
    until(lambda: cloud.member.image.get_image(image.id), lambda found: found.status == "active", "the image")
    cloud.wait(debian.server, "ACTIVE")
    made, disk, root = tmp_path / "image", tmp_path / "disk", tmp_path / "root"
    cloud.member.image.download_image(image.id, output=str(made))
    run("qemu-img", "convert", "-O", "raw", made, disk, timeout=300)
    run("dd", f"if={disk}", f"of={root}", "bs=1M", f"skip={ROOT_START}", "conv=sparse", "status=none", timeout=300)
    (features,) = (line for line in run("dumpe2fs", "-h", root).splitlines() if line.startswith("Filesystem features:"))
    # That of a disk which is copied while its guest writes has a journal that must be replayed.
    assert "has_journal" in features and "needs_recovery" not in features
    assert FROZEN in debian.run("sudo journalctl --unit qemu-guest-agent")
    # It has thawed.
    check_it_writes(debian)


def test_the_disk_shrinks_when_the_guest_trims_it(debian: Debian) -> None:
    debian.run("head -c 200M /dev/urandom > large; sync large")
    before = debian.driver.disk_bytes(debian.server.id)
    debian.run("rm large; sync; sudo fstrim /")
    assert debian.driver.disk_bytes(debian.server.id) < before - 150 * 2**20


def test_the_clock_of_debian_is_right_after_it_was_suspended(cloud: AuditedCloud, debian: Debian) -> None:
    boot = debian.boot_id()
    cloud.member.compute.suspend_server(debian.server.id)
    cloud.wait(debian.server, "SUSPENDED")
    since = time.time()
    until(time.time, lambda now: now > since + 3 * TOLERANCE, "the clock to be late")
    cloud.member.compute.resume_server(debian.server.id)
    cloud.wait(debian.server, "ACTIVE")
    check_clock(debian)
    assert debian.boot_id() == boot
    check_it_writes(debian)


def test_a_user_logs_in_on_the_serial_console_of_debian(cloud: AuditedCloud, debian: Debian) -> None:
    cloud.member.compute.change_server_password(debian.server.id, "known-to-nobody")
    cloud.wait(debian.server, "ACTIVE")
    console = Console(url_of(cloud, debian.server))
    console.type("\r")
    console.reads(b"login: ")
    console.type("root\r")
    console.reads(b"Password: ")
    console.type("known-to-nobody\r")
    console.reads(b"root@daily:~#")
    # Not what is typed, which the console repeats.
    console.type("echo $((6 * 7))-in-$(hostname)\r")
    console.reads(b"42-in-daily")
    console.close()


def test_a_stop_presses_the_power_key(cloud: AuditedCloud, debian: Debian) -> None:
    cloud.member.compute.stop_server(debian.server.id)
    cloud.wait(debian.server, "SHUTOFF")
    cloud.member.compute.start_server(debian.server.id)
    cloud.wait(debian.server, "ACTIVE")
    debian.is_booted()
    its_end = "sudo journalctl --boot -1 --no-pager"
    assert "Power key pressed" in debian.run(f"{its_end} --unit systemd-logind")
    assert "Reached target poweroff.target" in debian.run(f"{its_end} --identifier systemd --lines 150")


def test_a_crash_dump_ends_its_kernel_and_a_rescue_repairs_it_from_within(cloud: AuditedCloud, debian: Debian) -> None:
    boot = debian.boot_id()
    debian.run("sudo touch /broken; sync; sudo sysctl --quiet kernel.unknown_nmi_panic=1")
    panic = "Kernel panic - not syncing: NMI"
    assert panic not in debian.console()
    cloud.member.compute.trigger_server_crash_dump(debian.server.id)
    until(debian.console, lambda console: panic in console, "the kernel to panic on the console")

    cloud.member.compute.rescue_server(debian.server.id)
    cloud.wait(debian.server, "RESCUE")
    debian.is_booted()
    assert debian.boot_id() != boot
    # It is another Debian: a new one.
    assert debian.run("test -e /broken || echo new") == "new"
    debian.run("sudo mount /dev/vdb3 /mnt && sudo chroot /mnt sh -c 'rm /broken && dpkg --status bash > /repaired'")
    debian.run("sudo umount /mnt")
    cloud.member.compute.unrescue_server(debian.server.id)
    cloud.wait(debian.server, "ACTIVE")
    debian.is_booted()
    assert debian.run("test -e /broken || head -n 1 /repaired") == "Package: bash"
    check_it_writes(debian)


def url_of(cloud: AuditedCloud, server: Any) -> str:
    body = {"remote_console": {"protocol": "serial", "type": "serial"}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/remote-consoles", json=body, microversion="2.96")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["remote_console"]["url"])
