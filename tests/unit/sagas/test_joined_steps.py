"""Steps that begin with the one before them: one write fewer, and both are repeated or undone."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.model.sagas import SagaState, StepPhase, StepState
from causeway.sagas.recipe import Step
from tests.unit.sagas.simulation import ID, LEASE, Crash, Pivots, Plan, Shape, Simulation

JOINED = Shape((True, True, True), None, joined=frozenset({1}))


class Watched:
    """A simulation whose steps note what they do, with their attempt; at ``crashes_in`` the process dies the first time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shape: Shape = JOINED, crashes_in: str = "") -> None:
        self.simulation = Simulation(shape, Plan())
        self.done: list[tuple[str, int]] = []
        self.undone: list[str] = []
        self.writes = 0
        self.crashes_in = crashes_in
        for step in self.simulation.recipe.steps:
            monkeypatch.setattr(step, "do", self._watching(step))
            monkeypatch.setattr(step, "undo", self._watching_undo(step))
        record = self.simulation.prone.record

        def counted(*args: Any, **kwargs: Any) -> None:
            self.writes += 1
            record(*args, **kwargs)

        monkeypatch.setattr(self.simulation.prone, "record", counted)

    def _watching(self, step: Step[Any]) -> Any:
        works = step.do

        def do(run: Any) -> None:
            self.done.append((step.name, run.step.attempt))
            works(run)
            if step.name == self.crashes_in:
                self.crashes_in = ""
                raise Crash

        return do

    def _watching_undo(self, step: Step[Any]) -> Any:
        works = step.undo

        def undo(run: Any) -> None:
            self.undone.append(step.name)
            works(run)

        return undo

    def written(self) -> list[tuple[str, StepState]]:
        return [(row.step, row.state) for row in self.simulation.journal.steps(ID)]


def test_a_joined_step_saves_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    joined, apart = Watched(monkeypatch), Watched(monkeypatch, Shape((True, True, True), None))
    assert joined.simulation.run().state is apart.simulation.run().state is SagaState.DONE
    assert (joined.writes, apart.writes) == (3, 4)
    assert joined.written() == apart.written()


def test_a_joined_step_that_was_interrupted_is_repeated_with_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, crashes_in="Step1")
    watched.simulation._continue()
    assert watched.written() == [("Step0", StepState.STARTED)]
    assert watched.simulation.run().state is SagaState.DONE
    # The second process can't know whether Step1 had begun: it counts as repeated.
    assert watched.done == [("Step0", 1), ("Step1", 1), ("Step0", 2), ("Step1", 2), ("Step2", 1)]


def test_only_the_interrupted_step_itself_is_repeated_if_the_joined_one_had_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch, crashes_in="Step2")
    assert watched.simulation.run().state is SagaState.DONE
    assert watched.done == [("Step0", 1), ("Step1", 1), ("Step2", 1), ("Step2", 2)]


@pytest.mark.parametrize("place", ["Step0", "Step1"])
def test_both_are_undone_since_both_may_have_begun(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    watched = Watched(monkeypatch, crashes_in=place)
    watched.simulation._continue()
    assert watched.simulation.journal.request_cancel(ID)
    assert watched.simulation.run().state is SagaState.FAILED
    assert watched.undone == ["Step1", "Step0"]
    assert watched.simulation.world.kept == {}


def test_a_joined_step_is_not_undone_if_the_one_before_it_failed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)

    def refuse(_run: Any) -> None:
        raise errors.ServiceRefused("It refuses.")

    monkeypatch.setattr(watched.simulation.recipe.steps[0], "do", refuse)
    assert watched.simulation.run().state is SagaState.FAILED
    assert watched.undone == ["Step0"]


def test_what_a_joined_step_saves_has_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that takes the saga over must know that the step had begun."""
    shape = Shape((True, True, True), 1, pivots=Pivots.WITHIN, joined=frozenset({1}))
    watched = Watched(monkeypatch, shape, crashes_in="Step1")
    watched.simulation._continue()
    assert watched.written() == [("Step0", StepState.DONE), ("Step1", StepState.STARTED)]
    assert watched.simulation.run().state is SagaState.DONE
    assert watched.done == [("Step0", 1), ("Step1", 1), ("Step1", 2), ("Step2", 1)]


@pytest.mark.parametrize("joined", [frozenset({1, 2}), frozenset({2})], ids=["of-the-joined-one", "of-another"])
def test_of_three_steps_only_two_are_joined(monkeypatch: pytest.MonkeyPatch, joined: frozenset[int]) -> None:
    watched = Watched(monkeypatch, Shape((True, True, True), None, joined=joined))
    assert watched.simulation.run().state is SagaState.DONE
    assert watched.writes == 3


def test_what_is_written_with_the_end_of_a_step_is_not_delayed_by_the_one_that_joins_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched, order = Watched(monkeypatch), list[str]()
    first, second = watched.simulation.recipe.steps[:2]
    does, then = first.do, second.do

    def do(run: Any) -> None:
        does(run)
        run.with_next_save(lambda _connection: order.append("written"))

    def follow(run: Any) -> None:
        order.append("joined")
        then(run)

    monkeypatch.setattr(first, "do", do)
    monkeypatch.setattr(second, "do", follow)
    assert watched.simulation.run().state is SagaState.DONE
    assert order == ["written", "joined"]


def test_a_process_that_stops_between_the_two_writes_the_end_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    first = watched.simulation.recipe.steps[0]
    does = first.do

    def do(run: Any) -> None:
        does(run)
        run.environment.stopping.set()

    monkeypatch.setattr(first, "do", do)
    watched.simulation._continue()
    assert watched.written() == [("Step0", StepState.DONE)]
    monkeypatch.setattr(first, "do", does)
    watched.simulation.clock.seconds += LEASE
    assert watched.simulation.run().state is SagaState.DONE
    assert watched.done == [("Step0", 1), ("Step1", 1), ("Step2", 1)]


def test_a_saga_of_another_version_gets_this_one_before_a_step_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a release that joins no steps would take it over, and not know that the second one had begun."""
    watched = Watched(monkeypatch, crashes_in="Step1")
    watched.simulation.recipe = watched.simulation.recipe.__class__(
        **{**vars(watched.simulation.recipe), "version": 2, "continues": frozenset({1})}
    )
    watched.simulation.journal.sagas[ID].state = SagaState.RUNNING  # type: ignore[attr-defined]
    watched.simulation.journal.sagas[ID].recipe_version = 1  # type: ignore[attr-defined]
    watched.simulation._continue()
    assert watched.simulation.journal.get(ID).recipe_version == 2


def test_undos_never_join(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)

    def refuse(_run: Any) -> None:
        raise errors.ServiceRefused("It refuses.")

    monkeypatch.setattr(watched.simulation.recipe.steps[2], "do", refuse)
    assert watched.simulation.run().state is SagaState.FAILED
    rows = [(row.step, row.state) for row in watched.simulation.journal.steps(ID) if row.phase is StepPhase.UNDO]
    assert rows == [(name, StepState.DONE) for name in ("Step2", "Step1", "Step0")]
