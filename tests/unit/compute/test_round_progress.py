"""What is shown of a round leads to its end, however much of it does not travel."""

from __future__ import annotations

from causeway.compute.handover.round_progress import RoundProgress
from causeway.model.warm import CopiedDisk, CopyRound

ROOT, EPHEMERAL, BLANK = (
    CopiedDisk("disk", 4000, 10, 3000, 3),
    CopiedDisk("disk.eph0", 2000, 10, 1000, 1),
    CopiedDisk("disk.eph1", 2000, 10, 0, 0),
)
ROUND = CopyRound(1, None, "", "", [ROOT, BLANK, EPHEMERAL])


def test_what_is_left_is_as_much_as_what_came() -> None:
    reported: list[tuple[int, int]] = []
    progress = RoundProgress(lambda *given: reported.append(given), ROUND)
    progress.begin(ROOT, 0)
    progress.arrived(500, 1000)
    # Half of it can be saved by compressing.
    assert reported.pop() == (500, 2000)
    # The rest of the part was zeros.
    progress.begin(ROOT, 1)
    progress.arrived(250, 500)
    assert reported.pop() == (750, 2000)
    progress.begin(ROOT, 2)
    progress.begin(EPHEMERAL, 0)
    progress.arrived(1000, 1000)
    assert reported.pop() == (1750, 1750)


def test_one_that_continues_after_a_restart_knows_of_what_it_brings() -> None:
    reported: list[tuple[int, int]] = []
    progress = RoundProgress(lambda *given: reported.append(given), ROUND)
    progress.begin(ROOT, 2)
    progress.arrived(1000, 1000)
    assert reported == [(1000, 2000)]


def test_parts_that_are_images_are_places_on_the_disks() -> None:
    reported: list[tuple[int, int]] = []
    for disk, part in ((ROOT, 0), (ROOT, 2), (EPHEMERAL, 0)):
        progress = RoundProgress(lambda *given: reported.append(given), ROUND)
        progress.begin(disk, part)
        progress.downloaded(7, 14)
    assert reported == [(500, 4000), (2500, 4000), (3500, 4000)]


def test_nothing_is_reported_of_what_has_no_bytes() -> None:
    reported: list[tuple[int, int]] = []
    progress = RoundProgress(lambda *given: reported.append(given), ROUND)
    progress.begin(EPHEMERAL, 0)
    progress.downloaded(0, 0)
    assert reported == [(3000, 4000)]
