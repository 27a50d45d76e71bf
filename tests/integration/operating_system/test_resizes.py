"""Debian writes files while it is resized and migrated, with copies made while it runs and while it is off; its disk grows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.functional.servers.audited_cloud import AuditedCloud
from tests.integration.operating_system import ways
from tests.integration.operating_system.debian_servers import FROZEN, Debian, Debians
from tests.integration.operating_system.load import USER_DATA, Session, check_files, check_it_writes


@pytest.fixture
def debian(cloud: AuditedCloud, debians: Debians) -> Debian:
    """In the first cell."""
    cloud.flavor("first", gen=1, ram=512)
    for name, gen, gib in (("first.larger", 1, 2), ("second.larger", 2, 3), ("second.largest", 2, 3)):
        cloud.flavor(name, gen=gen, ram=640, disk=gib)
    return debians.booted("busy", flavor_id="first", user_data=USER_DATA)


def root_size(debian: Debian) -> int:
    """Of the root file system, in GiB, rounded up: some of the disk is not for files."""
    return -(-int(debian.run("df --output=size --block-size=1M / | tail -n 1")) // 1024)


def whole(debian: Debian, reported: Sequence[str] = ()) -> int:
    """Checks that it is as it was and continues; returns the size of its root file system."""
    debian.is_booted()
    check_it_writes(debian)
    assert check_files(debian, reported) > 5
    assert debian.run("systemctl --failed --no-legend") == ""
    return root_size(debian)


def resized(debian: Debian, flavor: str) -> int:
    """Resizes it while it writes; what it wrote until it was off must be there. Returns the size of its root file system."""
    with Session(debian) as session:
        debian.cloud.resized(debian.server, flavor)
    # It was copied while it ran, and stood still for a moment when a later round began.
    (*_, move) = debian.cloud.moves(debian.server)
    assert [disk["disk_format"] for disk in move.data["offer"]["disks"]] == ["changes"]
    size = whole(debian, session.reported)
    assert FROZEN in debian.run("sudo journalctl --boot -1 --unit qemu-guest-agent")
    return size


def test_its_files_and_the_size_of_its_disk_are_right_after_each_move(cloud: AuditedCloud, debian: Debian) -> None:
    assert (whole(debian), debian.host[:5]) == (1, "cell1")

    assert (resized(debian, "first.larger"), debian.host[:5]) == (2, "cell1")
    cloud.confirmed(debian.server)
    assert cloud.audit().is_clean

    assert (resized(debian, "second.larger"), debian.host[:5]) == (3, "cell2")
    cloud.reverted(debian.server)
    assert (whole(debian), debian.host[:5]) == (2, "cell1")

    assert (resized(debian, "second.largest"), debian.host[:5]) == (3, "cell2")
    cloud.confirmed(debian.server)
    assert cloud.audit().is_clean

    cloud.member.compute.stop_server(debian.server.id)
    cloud.wait(debian.server, "SHUTOFF")
    ways.migrated(debian, cloud.other_host(debian.server))
    cloud.confirmed(debian.server)
    cloud.member.compute.start_server(debian.server.id)
    cloud.wait(debian.server, "ACTIVE")
    assert (whole(debian), debian.host[:5]) == (3, "cell2")
    assert cloud.audit().is_clean
