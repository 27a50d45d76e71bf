"""The engine against a model: random recipes, random accidents, and what must hold whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from causeway import errors
from causeway.model.sagas import SagaState
from causeway.store.database import Database
from tests.unit.new_databases import new_database
from tests.unit.sagas.journal_in_database import JournalInDatabase
from tests.unit.sagas.simulation import ID, Accident, Crash, Pivots, Plan, Shape, Simulation

# Accidents that pass: whoever continues after them gets what was asked for.
PASSING = (Accident.FAIL, Accident.CRASH, Accident.FREEZE, Accident.LOSE_ANSWER, Accident.STOP)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    with new_database(tmp_path, "api", synchronous=False) as database:
        yield database


@st.composite
def shapes(draw: st.DrawFn, *, attended: bool | None = False) -> Shape:
    """``attended`` None: either."""
    fenced = tuple(draw(st.lists(st.booleans(), min_size=1, max_size=5)))
    is_attended = draw(st.booleans()) if attended is None else attended
    pivot = draw(st.none() | st.integers(0, len(fenced) - 1))
    joined = draw(st.frozensets(st.integers(1, 4)))
    return Shape(fenced, pivot, is_attended, draw(st.sampled_from(Pivots)), joined)


def plans(kinds: tuple[Accident, ...] = tuple(Accident)) -> st.SearchStrategy[Plan]:
    choices = st.dictionaries(st.integers(0, 40), st.integers(0, 7), max_size=6)
    return choices.map(lambda chosen: Plan(chosen, kinds))


@settings(max_examples=600)
@given(shapes(attended=None), plans())
# A slow process that is stopped never learns from the journal that the saga was taken over.
@example(Shape((True, False), None), Plan({4: 3, 6: 1, 8: 2, 28: 4}))
def test_a_saga_does_all_or_nothing(shape: Shape, plan: Plan) -> None:
    judge(Simulation(shape, plan))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes(attended=None), plans())
def test_a_saga_does_all_or_nothing_in_a_database(api: Database, shape: Shape, plan: Plan) -> None:
    judge(Simulation(shape, plan, partial(JournalInDatabase, api)))


def judge(simulation: Simulation) -> None:
    saga = simulation.run()
    assert not simulation.complaints
    if saga.state is SagaState.DONE:
        assert sorted(simulation.world.kept.values()) == [step.name for step in simulation.recipe.steps]
        assert set(simulation.world.kept) == set(saga.data["made"].values())
    else:
        assert simulation.world.kept == {}
        assert simulation.world.restored and not saga.pivoted
    # What was accepted happens, and at once.
    assert not (simulation.cancelled and saga.state is SagaState.DONE)
    assert not simulation.prone.begun_after_cancel
    assert simulation.world.switches == saga.pivoted
    if simulation.journal.states([ID]):
        assert None not in {event.finish_time for row in simulation.journal.steps(ID) for event in row.events or ()}


@pytest.mark.parametrize("joined", [(), (1,), (2,)], ids=["", "pivot-joins", "pivot-is-joined"])
@pytest.mark.parametrize("pivots", Pivots)
def test_a_saga_survives_every_pair_of_accidents_around_its_pivot(pivots: Pivots, joined: tuple[int, ...]) -> None:
    shape = Shape((True, False, True), 1, pivots=pivots, joined=frozenset(joined))
    for place, first in product(range(20), range(8)):
        for second in (None, *range(8)):
            choices = {place: first} if second is None else {place: first, place + 1: second}
            judge(Simulation(shape, Plan(choices)))


@settings(max_examples=400)
@given(shapes(), plans(PASSING))
def test_what_passes_costs_nothing(shape: Shape, plan: Plan) -> None:
    simulation = Simulation(shape, plan)
    assert simulation.run().state is SagaState.DONE
    assert not simulation.world.restored


@settings(max_examples=400)
@given(shapes(attended=True), plans())
def test_who_waits_for_the_end_gets_it(shape: Shape, plan: Plan) -> None:
    simulation = Simulation(shape, plan)
    saga = simulation.run()
    if saga.pivoted:
        return
    if simulation.answer is not None:
        assert (simulation.answer.state is SagaState.DONE) == (saga.state is SagaState.DONE)
    if simulation.prone.taken_over:
        assert saga.state is SagaState.FAILED


@settings(max_examples=200)
@given(shapes(), plans((Accident.REFUSE,)))
def test_what_is_refused_is_rolled_back_or_carried_through(shape: Shape, plan: Plan) -> None:
    simulation = Simulation(shape, plan)
    saga = simulation.run()
    assert saga.pivoted or not simulation.happened or saga.state is SagaState.FAILED


@given(shapes(attended=None))
def test_without_accidents_each_step_is_done_once(shape: Shape) -> None:
    simulation = Simulation(shape, Plan())
    assert simulation.run().state is SagaState.DONE
    done = [(row.step, row.attempt) for row in simulation.journal.steps(ID)]
    assert done == [(step.name, 1) for step in simulation.recipe.steps]


def test_a_saga_that_could_not_be_written_down_fails_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal answers again when it is asked who has the saga: nobody has."""
    simulation = Simulation(Shape((True,), None, attended=True), Plan())
    engine = simulation._process()

    def begin(*_: Any, **__: Any) -> None:
        engine.environment.stopping.set()
        raise errors.DatabaseFailed("The database failed.", details="nothing was written")

    monkeypatch.setattr(simulation.prone, "begin", begin)
    with pytest.raises(errors.DatabaseFailed):
        engine.carry_out(None, simulation._wanted(), admit=lambda _transaction: None)
    assert not engine.late.is_waiting


@pytest.mark.parametrize(
    ("failure", "written"),
    [(errors.ServiceFailed("It does not answer."), [2]), (errors.ServiceRefused("It refuses."), [])],
)
@pytest.mark.parametrize("at", [0, 2], ids=["before-the-pivot", "behind-the-pivot"])
def test_only_an_attempt_that_succeeds_writes(
    monkeypatch: pytest.MonkeyPatch, at: int, failure: errors.CausewayError, written: list[int]
) -> None:
    simulation = Simulation(Shape((True, True, True), 1), Plan())
    step, attempts, found = simulation.recipe.steps[at], list[int](), list[int]()
    works = step.do

    def do(run: Any) -> None:
        works(run)
        attempts.append(attempt := len(attempts) + 1)
        run.with_next_save(lambda _connection: found.append(attempt))
        if attempt == 1:
            raise failure

    monkeypatch.setattr(step, "do", do)
    saga = simulation.run()
    assert saga.state is (SagaState.DONE if written or at else SagaState.FAILED)
    # Behind the pivot a refusal is retried, too.
    assert found == (written or [2] * (at > 0))


@pytest.mark.parametrize("crashes", [False, True])
def test_what_turns_out_to_have_passed_its_pivot_goes_forward(
    monkeypatch: pytest.MonkeyPatch, *, crashes: bool
) -> None:
    """The pivot's step failed, and when it is to be undone it finds that it took effect all the same."""
    simulation = Simulation(Shape((True, True, True), 1), Plan())
    pivot, failed, undone = simulation.recipe.steps[1], list[Any](), list[Any]()
    works = pivot.do

    def do(run: Any) -> None:
        if not failed:
            failed.append(1)
            raise errors.ServiceRefused("It says that it has refused.")
        works(run)

    def undo(run: Any) -> None:
        undone.append(1)
        run.saga.pivoted = True
        if crashes and len(undone) == 1:
            raise Crash
        raise errors.GuestArrived("It took effect.")

    monkeypatch.setattr(pivot, "do", do)
    monkeypatch.setattr(pivot, "undo", undo)
    saga = simulation.run()
    assert (saga.state, saga.pivoted, saga.error) == (SagaState.DONE, True, None)
    assert set(simulation.world.kept.values()) == {"Step0", "Step1", "Step2"}
    assert simulation.world.restored == 0
