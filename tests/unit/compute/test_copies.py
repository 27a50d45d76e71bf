"""The target's side of a warm copy after its machine was started anew: what was synced holds, all else is requested again."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from causeway import durable
from causeway.compute.disks import changes
from causeway.compute.disks.copies import Copies
from causeway.errors import DiskTransferFailed
from causeway.model.outcomes import OperationToken
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.driver import BaseImage
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.warm import DiskReader
from tests.unit.compute.streams import joined

BLOCK, PARTS = 64, 4
SIZE = BLOCK * PARTS
TOKEN = OperationToken("0" * 36, "1" * 36, 1, "CopyWhileRunning")
FIRST, SECOND = 7, 8


class Content(DiskReader):
    """Each byte is the number of the round."""

    def __init__(self, number: int) -> None:
        self._number = number

    def extents(self) -> list[tuple[int, int]]:
        return [(0, SIZE)]

    def read_into(self, offset: int, buffer: memoryview) -> None:  # noqa: ARG002
        buffer[:] = bytes([self._number]) * len(buffer)

    def is_of_base(self, offset: int, data: memoryview) -> bool:  # noqa: ARG002
        return False


class Transfer:
    """A disk that goes to a target, one block in each part."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests = changes.Digests(SIZE, BLOCK)
        self.asked: list[int] = []
        self.start_target()

    def start_target(self) -> None:
        self.copies = Copies(self._folder / "copies", SimulatedDriver("host", self._folder / "hypervisor"))

    def receive(self, number: int, since: int | None = None, *, until: int | None = None) -> list[int]:
        """Orders a round, as often as wanted; returns which parts the target asked for."""
        disk = CopiedDisk("disk", SIZE, BLOCK, SIZE, PARTS)
        copied = CopyRound(number, since, "", "", [disk])
        self.asked.clear()
        self.copies.begin(TOKEN, "server", copied)

        @contextmanager
        def opened(_disk: CopiedDisk, part: int) -> Iterator[io.BytesIO]:
            self.asked.append(part)
            extents, end = [(part * BLOCK, BLOCK)], (part + 1) * BLOCK
            reader = Content(number)
            yield io.BytesIO(
                joined(changes.stream(reader, extents, self._digests, is_full=since is None, leads_to=end))
            )

        self.copies.receive(TOKEN, copied, disk, opened, no_base, lambda *_: None, until=until)
        return list(self.asked)

    def complete(self, number: int) -> Path | None:
        last = self._folder / "last"
        last.write_bytes(joined(changes.stream(Content(number), [(0, BLOCK)], self._digests, is_full=False)))
        return self.copies.complete(TOKEN, "disk", last, no_base)


def no_base(image_id: str) -> BaseImage:
    raise AssertionError(f"asks for image {image_id}")


@pytest.fixture
def transfer(tmp_path: Path) -> Transfer:
    return Transfer(tmp_path)


def start_machine(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "this_boot", lambda: "the next one")
    transfer.start_target()


def test_a_process_that_was_restarted_asks_for_the_next_part(transfer: Transfer) -> None:
    assert transfer.receive(FIRST, until=2) == [0, 1]
    transfer.start_target()
    assert transfer.receive(FIRST) == [2, 3]


def test_a_first_round_that_was_not_whole_is_lost(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer.receive(FIRST, until=2)
    start_machine(transfer, monkeypatch)
    with pytest.raises(DiskTransferFailed, match="not here"):
        transfer.receive(SECOND, FIRST)
    assert transfer.receive(FIRST) == [0, 1, 2, 3]


def test_a_whole_round_holds(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer.receive(FIRST)
    start_machine(transfer, monkeypatch)
    # The order may be repeated because its answer was lost.
    assert transfer.receive(FIRST) == []
    assert transfer.receive(SECOND, FIRST) == [0, 1, 2, 3]


def test_parts_of_a_later_round_are_asked_for_again(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer.receive(FIRST)
    transfer.receive(SECOND, FIRST, until=2)
    start_machine(transfer, monkeypatch)
    assert transfer.receive(SECOND, FIRST) == [0, 1, 2, 3]
    made = transfer.complete(SECOND)
    assert made is not None
    assert made.read_bytes() == bytes([SECOND]) * SIZE


def test_digests_that_a_power_cut_took_are_those_of_no_copy(
    transfer: Transfer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the whole disk travels."""
    transfer.receive(FIRST)
    transfer.receive(SECOND, FIRST, until=2)
    (digests,) = (tmp_path / "copies").glob("*/disk.digests")
    digests.write_bytes(b"")
    start_machine(transfer, monkeypatch)
    with pytest.raises(DiskTransferFailed, match="not here"):
        transfer.receive(SECOND, FIRST)


def test_last_changes_hold(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer.receive(FIRST)
    assert transfer.complete(SECOND) is not None
    start_machine(transfer, monkeypatch)
    assert transfer.copies.has_completed(TOKEN.operation_id)


def test_only_a_whole_round_is_synced(transfer: Transfer) -> None:
    """And what the driver flushes: once for each part."""
    before = durable.syncs.total
    transfer.receive(FIRST, until=PARTS - 1)
    # The name of the folder.
    assert durable.syncs.total == before + 1 + (PARTS - 1)
    transfer.receive(FIRST)
    # The digests and the state, with their names.
    assert durable.syncs.total == before + 1 + PARTS + 3
