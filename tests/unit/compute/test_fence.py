"""Orders of moves at a host: each takes effect once, none after it was undone, and none of a conductor that lost the move."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway import errors
from causeway.compute.host.fence import UNDONE_BY, Fence
from causeway.model.outcomes import MoveToken


def token(epoch: int = 1, move: str = "move") -> MoveToken:
    return MoveToken(move, "migration", epoch, "Step")


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def fence(tmp_path: Path) -> Fence:
    return Fence(tmp_path, "host1")


def order(fence: Fence, done: list[str], method: str, epoch: int = 1, move: str = "move") -> int:
    def work() -> int:
        done.append(method)
        return len(done)

    return fence.once(token(epoch, move), method, int, work)


def test_an_order_takes_effect_once_however_often_it_comes(fence: Fence, done: list[str], tmp_path: Path) -> None:
    assert [order(fence, done, "finish_resize", epoch) for epoch in (1, 1, 2)] == [1, 1, 1]
    assert order(Fence(tmp_path, "host1"), done, "finish_resize", 3) == 1
    assert done == ["finish_resize"]


def test_an_order_of_an_older_epoch_is_refused(fence: Fence, done: list[str]) -> None:
    order(fence, done, "prep_resize", epoch=2)
    with pytest.raises(errors.TakenOver):
        order(fence, done, "finish_resize", epoch=1)
    assert done == ["prep_resize"]


@pytest.mark.parametrize("epoch", [1, 2, 3], ids=["older", "same", "newer"])
@pytest.mark.parametrize(("method", "undoing"), [(method, end) for method, ends in UNDONE_BY.items() for end in ends])
def test_what_was_undone_is_not_done_by_an_order_that_comes_late(
    fence: Fence, done: list[str], tmp_path: Path, method: str, undoing: str, epoch: int
) -> None:
    order(fence, done, undoing, epoch=2)
    with pytest.raises(errors.ClaimRefused if epoch > 1 else errors.TakenOver):
        order(fence, done, method, epoch)
    # Nor by a host that was started again.
    with pytest.raises(errors.CausewayError):
        order(Fence(tmp_path, "host1"), done, method, epoch)
    assert done == [undoing]


@pytest.mark.parametrize("method", UNDONE_BY)
def test_an_outcome_that_was_undone_is_not_told_any_more(fence: Fence, done: list[str], method: str) -> None:
    order(fence, done, method)
    order(fence, done, UNDONE_BY[method][0])
    with pytest.raises(errors.ClaimRefused):
        order(fence, done, method)


@pytest.mark.parametrize("method", UNDONE_BY)
def test_another_move_may_do_what_this_one_has_undone(fence: Fence, done: list[str], method: str) -> None:
    order(fence, done, UNDONE_BY[method][0])
    assert order(fence, done, method, move="the next one") == 2


def test_undoing_that_failed_refuses_nothing_yet(fence: Fence, done: list[str]) -> None:
    def fail() -> None:
        raise errors.GuestFailed("The hypervisor does not answer.")

    with pytest.raises(errors.GuestFailed):
        fence.once(token(), "drop_move_at_dest", type(None), fail)
    assert order(fence, done, "finish_snapshot_based_resize_at_dest") == 1
