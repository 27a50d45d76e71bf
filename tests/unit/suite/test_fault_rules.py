"""Faults in the processes of a cloud elsewhere: what tests write, an injector as those processes have it reads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from causeway.faults.injector import NOTHING, Injector
from causeway.rpc.transport import Verdict
from tests.functional.servers.fault_rules import FaultRules

POINT = "rpc.compute.finish_snapshot_based_resize_at_dest.request"


@pytest.fixture
def rules(tmp_path: Path) -> FaultRules:
    return FaultRules(tmp_path / "faults.yaml", None)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Injector:
    return Injector(tmp_path / "faults.yaml")


def test_a_held_call_stays_until_the_block_ends(rules: FaultRules, elsewhere: Injector) -> None:
    with ThreadPoolExecutor() as pool:
        with rules.held("finish_snapshot_based_resize_at_dest") as reached:
            assert not reached.is_set()
            call = pool.submit(elsewhere.reach, POINT, NOTHING)
            assert reached.wait(30)
            # The next one is not held.
            assert elsewhere.reach(POINT, NOTHING) is None
            assert not call.done()
        assert call.result(30) is None


def test_a_call_that_was_not_made_is_not_reached(rules: FaultRules) -> None:
    with rules.held("finish_snapshot_based_resize_at_dest") as reached:
        assert not reached.wait(0)


def test_a_method_is_lost_as_often_as_it_is_said_each_time(rules: FaultRules, elsewhere: Injector) -> None:
    for _again in range(2):
        rules.lose(("finish_snapshot_based_resize_at_dest",), Verdict.LOSE_REQUEST, 2)
        assert [elsewhere.reach(POINT, NOTHING) for _call in range(3)] == ["error", "error", None]


def test_nothing_is_left_of_faults(rules: FaultRules, elsewhere: Injector, tmp_path: Path) -> None:
    rules.cut_offers()
    assert elsewhere.reach("disk.fetch.connect", NOTHING) == "error"
    rules.heal()
    assert elsewhere.reach("disk.fetch.connect", NOTHING) is None
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_point_is_refused(rules: FaultRules) -> None:
    with pytest.raises(pytest.skip.Exception, match="there is not one fault point"), rules.held("no_such_method"):
        pass
