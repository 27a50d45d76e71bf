"""What tests of resizes share: flavors of either cell, and a resize of a guest that writes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.functional.servers.audited_cloud import AuditedCloud
from tests.integration.operating_system.debian_servers import FROZEN, Debian, Debians
from tests.integration.operating_system.load import USER_DATA, Session, check_files, check_it_writes


def writing(cloud: AuditedCloud, debians: Debians) -> Debian:
    """A Debian that writes, in the first cell; there is a larger flavor in it and two in the second."""
    cloud.flavor("first", gen=1, ram=512)
    for name, gen, gib in (("first.larger", 1, 2), ("second.larger", 2, 2), ("second.largest", 2, 3)):
        cloud.flavor(name, gen=gen, ram=640, disk=gib)
    return debians.booted("busy", flavor_id="first", user_data=USER_DATA)


def whole(debian: Debian, reported: Sequence[str] = ()) -> int:
    """Checks that it is as it was and continues; returns the size of its root file system, in GiB.

    That is rounded up, because some of the disk is not for files. ``reported``: see `check_files`.
    """
    debian.is_booted()
    check_it_writes(debian)
    assert check_files(debian, reported) > 5
    assert debian.run("systemctl --failed --no-legend") == ""
    return -(-int(debian.run("df --output=size --block-size=1M / | tail -n 1")) // 1024)


def resized(debian: Debian, flavor: str) -> int:
    """Resizes it while it writes; what it wrote until it was off must be there. Returns the size of its root file system."""
    with Session(debian) as session:
        debian.cloud.resized(debian.server, flavor)
    # It was copied while it ran, and stood still for a moment when a later round began.
    (*_, move) = debian.cloud.moves(debian.server)
    assert [disk["disk_format"] for disk in move.data["offer"]["disks"]] == ["changes"]
    found = whole(debian, session.reported)
    assert FROZEN in debian.run("sudo journalctl --boot -1 --unit qemu-guest-agent")
    return found
