"""Where disks are in storage of several hosts, a guest arrives live only with disks that are there: libvirt copies into files."""

from __future__ import annotations

import pytest

from causeway.errors import ClaimRefused
from causeway.model.shared_disk import SharedDisk
from causeway.virt.libvirt.live.live_source import check_stays
from causeway.virt.live_guest import LiveDisk, LiveSource

OFFERED = SharedDisk("rbd:fsid/pool", "one_disk", "host 1")


@pytest.mark.parametrize(
    ("disks", "reached"),
    [
        ([LiveDisk("disk", 1, None, OFFERED)], False),
        ([LiveDisk("disk", 1, None)], True),
        ([LiveDisk("disk", 1, None, OFFERED), LiveDisk("disk.eph0", 1, None)], True),
    ],
    ids=["in another pool", "a file", "one of two is a file"],
)
def test_disks_that_would_be_copied_into_storage_are_refused(disks: list[LiveDisk], reached: bool) -> None:
    with pytest.raises(ClaimRefused, match="can't copy disks"):
        check_stays(LiveSource("QEMU", 1, disks), lambda _offered: reached)


def test_disks_that_are_there_may_stay_and_a_guest_without_any_may_come() -> None:
    check_stays(
        LiveSource("QEMU", 1, [LiveDisk("disk", 1, None, OFFERED)]), lambda offered: offered == {"disk": OFFERED}
    )
    check_stays(LiveSource("QEMU", 1), lambda _offered: False)
