"""Orders of moves at a host: each takes effect once, none after it was undone, and none of a conductor that lost the move."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from causeway import errors
from causeway.compute.host import fence as fences
from causeway.compute.host.fence import DONE_ANEW, KEPT_FOR, UNDONE_BY, Fence
from causeway.model.outcomes import FIRST_EPOCH, OperationToken


def token(epoch: int = 1, move: str = "move") -> OperationToken:
    return OperationToken(move, "migration", epoch, "Step")


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
    assert [order(fence, done, "finish_snapshot_based_resize_at_dest", epoch) for epoch in (1, 1, 2)] == [1, 1, 1]
    assert order(Fence(tmp_path, "host1"), done, "finish_snapshot_based_resize_at_dest", 3) == 1
    assert done == ["finish_snapshot_based_resize_at_dest"]


def test_an_order_of_an_older_epoch_is_refused(fence: Fence, done: list[str]) -> None:
    order(fence, done, "prep_snapshot_based_resize_at_dest", epoch=2)
    with pytest.raises(errors.TakenOver):
        order(fence, done, "finish_snapshot_based_resize_at_dest", epoch=1)
    assert done == ["prep_snapshot_based_resize_at_dest"]


@pytest.mark.parametrize(
    ("method", "undoing", "epoch"),
    [
        pytest.param(method, end, epoch, id=f"{method}-{end}-{name}")
        for method, ends in UNDONE_BY.items()
        for end in ends
        for epoch, name in ((1, "older"), (2, "same"), (3, "newer"))
        if epoch < 3 or method not in DONE_ANEW
    ],
)
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
def test_an_outcome_that_was_undone_is_not_shown_any_more(fence: Fence, done: list[str], method: str) -> None:
    order(fence, done, method)
    order(fence, done, UNDONE_BY[method][0])
    with pytest.raises(errors.ClaimRefused):
        order(fence, done, method)


@pytest.mark.parametrize("method", UNDONE_BY)
def test_another_move_may_do_what_this_one_has_undone(fence: Fence, done: list[str], method: str) -> None:
    order(fence, done, UNDONE_BY[method][0])
    assert order(fence, done, method, move="the next one") == 2


@pytest.mark.parametrize(("method", "undoing"), [("connect_volume", "disconnect_volume"), ("plug_port", "unplug_port")])
def test_what_was_done_on_one_host_may_be_undone_on_the_servers_next_one(
    fence: Fence, done: list[str], tmp_path: Path, method: str, undoing: str
) -> None:
    order(fence, done, method)
    order(Fence(tmp_path / "next", "host2"), done, undoing)
    assert done == [method, undoing]


def test_undoing_that_failed_refuses_nothing_yet(fence: Fence, done: list[str]) -> None:
    def fail() -> None:
        raise errors.GuestFailed("The hypervisor does not answer.")

    with pytest.raises(errors.GuestFailed):
        fence.once(token(), "drop_move_at_dest", type(None), fail)
    assert order(fence, done, "finish_snapshot_based_resize_at_dest") == 1


@pytest.mark.parametrize("method", sorted(DONE_ANEW))
def test_what_may_have_changed_since_is_done_anew_in_a_new_epoch_and_once_in_each(
    fence: Fence, done: list[str], method: str
) -> None:
    assert [order(fence, done, method, epoch) for epoch in (1, 1, 2, 2)] == [1, 1, 2, 2]
    with pytest.raises(errors.TakenOver):
        order(fence, done, method, epoch=1)
    assert done == [method, method]


def test_who_takes_a_build_over_builds_on_the_same_host_though_it_was_undone_there(
    fence: Fence, done: list[str], tmp_path: Path
) -> None:
    for method in ("build_guest", "undo_build"):
        order(fence, done, method, epoch=1)
    assert order(fence, done, "build_guest", epoch=2) == 3
    with pytest.raises(errors.TakenOver):
        order(Fence(tmp_path, "host1"), done, "undo_build", epoch=1)
    # What undid the first attempt has not undone the second one.
    assert order(fence, done, "undo_build", epoch=2) == 4
    for epoch, error in ((1, errors.TakenOver), (2, errors.ClaimRefused)):
        with pytest.raises(error):
            order(fence, done, "build_guest", epoch)
    assert len(done) == 4


def test_an_answer_that_is_only_repeated_shows_the_new_epoch_too(fence: Fence, done: list[str]) -> None:
    order(fence, done, "remove_guest", epoch=1)
    assert order(fence, done, "remove_guest", epoch=2) == 1
    with pytest.raises(errors.TakenOver):
        order(fence, done, "start_guest", epoch=1)


def test_nobody_else_may_read_the_outcomes(fence: Fence, done: list[str], tmp_path: Path) -> None:
    """They say how volumes are connected."""
    order(fence, done, "connect_volume")
    (record,) = tmp_path.glob("*.json")
    assert record.stat().st_mode & 0o077 == 0


def test_records_of_what_is_long_past_go_while_the_host_runs(
    fence: Fence, done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order(fence, done, "connect_volume", move="of last week")
    order(fence, done, "connect_volume", move="of today")
    old = (tmp_path / "of last week.json").stat().st_mtime - KEPT_FOR - 1
    os.utime(tmp_path / "of last week.json", (old, old))
    order(fence, done, "connect_volume", move="the next one")
    assert len(list(tmp_path.glob("*.json"))) == 3
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + fences.LOOK_EVERY)
    order(fence, done, "connect_volume", move="of tomorrow")
    assert {path.stem for path in tmp_path.glob("*.json")} == {"of today", "the next one", "of tomorrow"}


@pytest.mark.parametrize(
    ("former", "present", "late"),
    [
        ("resize_instance", "prep_snapshot_based_resize_at_source", None),
        ("finish_revert_resize", "restore_at_source", "prep_snapshot_based_resize_at_source"),
        ("revert_resize", "drop_move_at_dest", "finish_snapshot_based_resize_at_dest"),
    ],
)
def test_orders_of_0_1_0_are_known_by_their_present_names(
    fence: Fence, done: list[str], tmp_path: Path, former: str, present: str, late: str | None
) -> None:
    order(fence, done, former)
    upgraded = Fence(tmp_path, "host1")
    assert order(upgraded, done, present) == 1
    if late is not None:
        with pytest.raises(errors.ClaimRefused):
            order(upgraded, done, late)
    assert done == [former]


@pytest.mark.parametrize("each_time", [False, True], ids=["once", "each time"])
@pytest.mark.parametrize(("epoch", "refused"), [(FIRST_EPOCH, False), (FIRST_EPOCH + 1, True)])
def test_an_order_that_died_half_way_has_shut_out_older_ones(
    tmp_path: Path, done: list[str], each_time: bool, epoch: int, refused: bool
) -> None:
    """Before the first epoch is none, so its orders are recorded only when they are done."""

    class Killed(BaseException):
        pass

    def die() -> int:
        raise Killed

    fence = Fence(tmp_path, "host1")
    with pytest.raises(Killed):
        if each_time:
            fence.each_time(token(epoch), "begin_round", die)
        else:
            fence.once(token(epoch), "build_guest", int, die)
    assert len(list(tmp_path.glob("*.json"))) == refused
    after = Fence(tmp_path, "host1")
    if refused:
        with pytest.raises(errors.TakenOver):
            order(after, done, "build_guest", epoch - 1)
    else:
        assert order(after, done, "build_guest", epoch) == 1
