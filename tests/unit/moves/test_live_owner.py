"""Who owns a guest during and after its live migration: every combination of what two hypervisors show."""

from __future__ import annotations

import itertools

import pytest

from causeway.moves.live_owner import Decision, owner
from causeway.virt.live_guest import Presence

ANY: list[Presence | None] = [None, *Presence]
ALIVE = (Presence.RUNNING, Presence.PAUSED)
COMING = (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION)

# (source, target) without a job at the source, for targets where no guest is alive.
_ROWS = """
source               | not asked | absent  | incoming | held     | off     | crashed
not asked            | unclear   | unclear | unclear  | unclear  | unclear | unclear
absent               | unclear   | lost    | unclear  | unclear  | stopped | stopped
running              | stayed    | stayed  | stayed   | stayed   | stayed  | stayed
paused               | unclear   | stayed  | stayed   | stayed   | stayed  | stayed
incoming             | unclear   | unclear | unclear  | unclear  | unclear | unclear
held                 | unclear   | unclear | unclear  | unclear  | unclear | unclear
off                  | unclear   | stopped | unclear  | unclear  | stopped | stopped
crashed              | unclear   | stopped | stopped  | stopped  | stopped | stopped
"""
_NAMES: dict[str, Presence | None] = {"not asked": None, "held": Presence.PAUSED_FOR_MIGRATION} | {
    each.value: each for each in Presence
}
_HEAD, *_LINES = [[cell.strip() for cell in line.split("|")] for line in _ROWS.strip().splitlines()]
CASES = [
    (_NAMES[line[0]], _NAMES[name], Decision(cell))
    for line in _LINES
    for name, cell in zip(_HEAD[1:], line[1:], strict=True)
]


@pytest.mark.parametrize(("source", "target", "decision"), CASES)
def test_both_hypervisors_decide_the_owner_without_a_job(
    source: Presence | None, target: Presence | None, decision: Decision
) -> None:
    assert owner(source, target, has_job=False) is decision


def test_the_table_is_whole() -> None:
    reported = {(source, target) for source, target, _decision in CASES}
    dead = [target for target in ANY if target not in ALIVE]
    assert reported == set(itertools.product(ANY, dead))


@pytest.mark.parametrize("source", ANY)
@pytest.mark.parametrize("target", ALIVE)
def test_a_guest_that_is_alive_at_the_target_is_the_targets(source: Presence | None, target: Presence) -> None:
    assert owner(source, target, has_job=False) is Decision.ARRIVED
    # Its memory may still be on its way: nothing is destroyed at the source before that has ended, and nothing aborted.
    assert owner(source, target, has_job=True) is Decision.LANDING


@pytest.mark.parametrize("source", Presence)
@pytest.mark.parametrize("target", [each for each in ANY if each not in ALIVE])
def test_nothing_is_decided_while_the_source_is_at_it(source: Presence, target: Presence | None) -> None:
    assert owner(source, target, has_job=True) is Decision.UNDER_WAY


@pytest.mark.parametrize(("source", "target", "has_job"), itertools.product(ANY, ANY, (False, True)))
def test_the_target_is_cleared_only_if_nothing_there_can_come_alive(
    source: Presence | None, target: Presence | None, has_job: bool
) -> None:
    decision = owner(source, target, has_job=has_job)
    if decision in (Decision.STAYED, Decision.STOPPED, Decision.LOST):
        assert target not in ALIVE and not has_job
        # What is coming in can only come alive if the source released it.
        assert target not in COMING or source in (*ALIVE, Presence.CRASHED)
    if decision is Decision.ARRIVED:
        assert target in ALIVE and not has_job
