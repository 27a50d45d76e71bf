"""Disks that QEMU copies into a pool stand on no base image: a source that leaves out what that has sends nothing."""

from __future__ import annotations

import pytest

from causeway.errors import ClaimRefused
from causeway.model.shared_disk import SharedDisk
from causeway.virt.libvirt.live.live_source import check_copies
from causeway.virt.live_guest import LiveDisk, LiveSource

OFFERED = SharedDisk("rbd:fsid/pool", "one_disk", "host 1")
FILE, IN_POOL = LiveDisk("disk", 1, "image"), LiveDisk("disk", 1, None, OFFERED)
MIXED = [IN_POOL, LiveDisk("disk.eph0", 1, None)]


@pytest.mark.parametrize(
    ("disks", "reached"),
    [([IN_POOL], False), ([FILE], True), (MIXED, True)],
    ids=["in another pool", "a file", "one of two is a file"],
)
def test_disks_that_are_copied_come_whole_or_not_at_all(disks: list[LiveDisk], reached: bool) -> None:
    with pytest.raises(ClaimRefused, match="of a release"):
        check_copies(LiveSource("QEMU", 1, disks), lambda _offered: reached)
    check_copies(LiveSource("QEMU", 1, disks, details={"copies_whole": True}), lambda _offered: reached)


def test_disks_that_are_there_may_stay_and_a_guest_without_any_may_come() -> None:
    check_copies(LiveSource("QEMU", 1, [IN_POOL]), lambda offered: offered == {"disk": OFFERED})
    check_copies(LiveSource("QEMU", 1), lambda _offered: False)
