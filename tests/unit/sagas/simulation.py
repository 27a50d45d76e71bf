"""Sagas that run in one thread, against a journal in memory, a world that they change, and a plan of accidents.

Each place where something can happen to a process (before and after each call to the world and each write of the journal) has a
number. A plan says at which of them what happens. A process that is *frozen* stands still there while its lease expires and
another one continues; then it continues, and does not know.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

import msgspec

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.sagas import ENDED, Saga, SagaState, StepPhase, StepRecord
from causeway.sagas.clock import Clock
from causeway.sagas.engine import Engine
from causeway.sagas.environment import Environment
from causeway.sagas.journal import Journal, Write
from causeway.sagas.observer import Observer
from causeway.sagas.recipe import Recipe, Step
from causeway.sagas.run import Run
from causeway.sagas.versions import Knowledge
from tests.unit.sagas.journal_in_memory import JournalInMemory

ID = "11111111-2222-3333-4444-555555555555"
LEASE = 30.0
OPTIONS: Any = SimpleNamespace(
    lease=LEASE,
    journal_patience=60.0,
    patience=1e6,
    stuck_retry_interval=30.0,
    first_pause=0.5,
    attempts=4,
    workers=1,
    at_once=1,
)


class Accident(StrEnum):
    FAIL = "fail"
    REFUSE = "refuse"
    BREAK = "break"
    CRASH = "crash"
    FREEZE = "freeze"
    LOSE_ANSWER = "lose answer"
    CANCEL = "cancel"
    STOP = "stop"


class Crash(BaseException):
    """The process ends here."""


class SimulatedClock(Clock):
    def __init__(self) -> None:
        self.seconds = 1000.0

    def boot(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1) + timedelta(seconds=self.seconds)

    def wait(self, stopping: threading.Event, seconds: float) -> bool:
        if stopping.is_set():
            return True
        self.seconds += seconds
        return False


@dataclass
class Memory:
    """step -> what it made."""

    made: dict[str, str] = field(default_factory=dict)


@dataclass
class Plan:
    """``choices``: place -> which of the accidents happens there that are possible; ``kinds``: those that there are."""

    choices: dict[int, int] = field(default_factory=dict)
    kinds: tuple[Accident, ...] = tuple(Accident)
    places: Iterator[int] = field(default_factory=itertools.count)

    def reach(self, *possible: Accident) -> Accident | None:
        choice, kinds = self.choices.get(next(self.places)), [kind for kind in possible if kind in self.kinds]
        return kinds[choice % len(kinds)] if choice is not None and kinds else None


class SimulatedJournal(Journal[Any], Protocol):
    def insert(self, saga_id: str, recipe: str) -> None:
        """Requests a saga."""

    def request_cancel(self, saga_id: str) -> bool:
        """Returns False if it is too late for that."""


class AccidentProne(Journal[Any]):
    """A journal to whose writes something happens.

    ``begun_after_cancel``: steps that should not have begun. ``taken_over``: somebody acquired it before its pivot.
    """

    def __init__(self, journal: SimulatedJournal, at: Callable[..., None]) -> None:
        self._journal = journal
        self._at = at
        self.begun_after_cancel: list[str] = []
        self.taken_over = False
        for name in (
            "renew",
            "get",
            "states",
            "steps",
            "is_recorded",
            "check_wanted",
            "abandoned",
            "park",
            "close",
        ):
            setattr(self, name, getattr(journal, name))

    def acquire(self, saga_id: str, owner: str, lease: float, **others: Any) -> Any:
        found = self._journal.acquire(saga_id, owner, lease, **others)
        self.taken_over = self.taken_over or (found is not None and not found.pivoted)
        return found

    def begin(self, saga: Any, **others: Any) -> None:
        self._at("before a write", Accident.FAIL)
        self._journal.begin(saga, **others)
        self._at("after a write", Accident.LOSE_ANSWER)

    def record(self, saga: Any, *, started: StepRecord | None, **others: Any) -> None:
        self._at("before a write", Accident.FAIL)
        known = self._journal.get(saga.id)
        self._journal.record(saga, started=started, **others)
        if started is not None and started.phase is StepPhase.DO and known.cancel_requested and not known.pivoted:
            self.begun_after_cancel.append(started.step)
        self._at("after a write", Accident.LOSE_ANSWER)


class World:
    """What steps make. ``kept``: thing -> the step that made it. ``epoch``: the highest that fenced parts were given."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.epoch = 0
        self.restored = 0
        self.switches = 0
        self._numbers = itertools.count(1)

    def of(self, step: str) -> list[str]:
        return [thing for thing, maker in self.kept.items() if maker == step]

    def make(self, step: str) -> str:
        thing = f"{step}-{next(self._numbers)}"
        self.kept[thing] = step
        return thing

    def switch(self, _transaction: object) -> None:
        """What is written with the pivot."""
        self.switches += 1

    def fence(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise errors.TakenOver("an order of a former owner")
        self.epoch = epoch


class SimulatedRun(Run[Saga, Memory]):
    simulation: Simulation


class Pivots(StrEnum):
    """When the pivot of a step takes effect."""

    WITH_BEGINNING = "with its beginning"
    WITHIN = "within"
    WITH_END = "with its end"


class Making(Step[SimulatedRun]):
    """Makes one thing. ``fenced``: in a part of the world that knows epochs. ``place``: in its recipe, with its pivot's.

    ``joined``: begins with the one before it.
    """

    def __init__(
        self, place: int, pivot: int | None, *, fenced: bool, joined: bool = False, pivots: Pivots = Pivots.WITHIN
    ) -> None:
        self.name = f"Step{place}"  # type: ignore[misc]
        self.joining(*([f"Step{place - 1}"] if joined else []))
        self.fenced = fenced
        self.pivot = pivots if place == pivot else None
        self.pivots = self.pivot is Pivots.WITH_BEGINNING  # type: ignore[misc]
        self.is_behind_pivot = pivot is not None and (place > pivot or self.pivots)

    def with_start(self, run: SimulatedRun) -> Write | None:
        return run.simulation.world.switch if self.pivots and not run.saga.pivoted else None

    def do(self, run: SimulatedRun) -> None:
        if run.saga.pivoted and self.pivot is Pivots.WITHIN and run.simulation.world.of(self.name):
            return
        with run.event("make"):
            self._make(run)

    def _make(self, run: SimulatedRun) -> None:
        world, at = run.simulation.world, run.simulation.at
        run.check_lease()
        at("before a call", Accident.FAIL, Accident.REFUSE, Accident.BREAK)
        if self.fenced:
            world.fence(run.saga.epoch)
        run.simulation.judge_do(run, self)
        present = world.of(self.name)
        if not self.fenced and not self.is_behind_pivot:
            at("between look and call")
        run.memory.made[self.name] = present[0] if present else world.make(self.name)
        at("after a call", Accident.FAIL, Accident.BREAK)
        if self.pivot is Pivots.WITHIN:
            run.pivot(also=run.simulation.world.switch)
        if self.pivot is Pivots.WITH_END:
            run.pivot_with_end(run.simulation.world.switch)
            run.simulation.at("before the end", Accident.FAIL, Accident.REFUSE, Accident.BREAK)

    def undo(self, run: SimulatedRun) -> None:
        run.check_lease()
        run.simulation.at("before a call", Accident.FAIL, Accident.REFUSE, Accident.BREAK)
        if self.fenced:
            run.simulation.world.fence(run.saga.epoch)
        run.simulation.judge_undo(run, self)
        for thing in run.simulation.world.of(self.name):
            del run.simulation.world.kept[thing]
        run.memory.made.pop(self.name, None)
        run.simulation.at("after a call", Accident.FAIL, Accident.BREAK)


@dataclass(frozen=True)
class Shape:
    """``fenced``: of each step; ``pivot``: its place, None: none. ``attended``: who asks waits for the end. ``pivots``: when.

    ``joined``: the places of the steps that begin with the one before them.
    """

    fenced: tuple[bool, ...]
    pivot: int | None
    attended: bool = False
    pivots: Pivots = Pivots.WITHIN
    joined: frozenset[int] = frozenset()

    def steps(self) -> tuple[Making, ...]:
        return tuple(
            Making(place, self.pivot, fenced=fenced, joined=place in self.joined, pivots=self.pivots)
            for place, fenced in enumerate(self.fenced)
        )


class Simulation:
    """One saga, and as many processes as it needs."""

    def __init__(
        self, shape: Shape, plan: Plan, journal: Callable[[SimulatedClock], SimulatedJournal] = JournalInMemory
    ) -> None:
        self.clock = SimulatedClock()
        self.plan = plan
        self.happened: list[tuple[str, Accident]] = []
        self.journal = journal(self.clock)
        self.prone = AccidentProne(self.journal, self.at)  # type: ignore[abstract]  # its methods are set in __init__
        self.world = World()
        self.complaints: list[str] = []
        self.cancelled = False
        #: the answer to whoever asked, if the saga was attended and they got an answer
        self.answer: Saga | None = None
        self._processes = 0
        self._crashed = self._froze = False
        #: those at work, the last one is not frozen; and those that have not crashed
        self._at_work: list[Engine[Saga]] = []
        self._engines: list[Engine[Saga]] = []
        self.recipe: Recipe[SimulatedRun] = Recipe(
            "simulated",
            shape.steps(),
            pivot=f"Step{shape.pivot}" if shape.pivot is not None else "",
            rolled_back=self._rolled_back,
            undo_late=self._undo_late,
            attended=shape.attended,
        )
        if not shape.attended:
            self.journal.insert(ID, self.recipe.name)

    # what happens

    def at(self, where: str, *failures: Accident) -> None:
        """A place where something may happen."""
        always = (Accident.CRASH, Accident.FREEZE, Accident.CANCEL, Accident.STOP)
        accident = self.plan.reach(*always, *failures)
        if accident is None:
            return
        self.happened.append((where, accident))
        match accident:
            case Accident.CRASH:
                raise Crash
            case Accident.FREEZE:
                self._freeze()
            case Accident.CANCEL:
                if self.journal.states([ID]):
                    self.cancelled = self.journal.request_cancel(ID) or self.cancelled
            case Accident.STOP:
                self._at_work[-1].environment.stopping.set()
            case Accident.LOSE_ANSWER:
                raise errors.DatabaseFailed("The database failed.", details="the answer was lost")
            case Accident.FAIL if "write" in where:
                raise errors.DatabaseFailed("The database failed.", details="nothing was written")
            case Accident.FAIL:
                raise errors.ServiceFailed("A service failed.")
            case Accident.REFUSE:
                raise errors.ServiceRefused("A service refused.")
            case Accident.BREAK:
                raise RuntimeError("a mistake in the program")

    def _freeze(self) -> None:
        """Whoever is at work stands still; its lease expires, and another process continues for a while."""
        self._froze = True
        self.clock.seconds += LEASE + 1
        self._continue()

    # processes

    def _process(self) -> Engine[Saga]:
        self._processes += 1
        owner = f"host/{self._processes}"
        at_work: set[str] = set()

        @contextmanager
        def working_on(saga_id: str) -> Iterator[bool]:
            free = saga_id not in at_work
            at_work.add(saga_id)
            yield free
            at_work.discard(saga_id)

        life: Any = SimpleNamespace(
            host="host", owner=owner, former=frozenset(), mine=frozenset({owner}), working_on=working_on
        )
        environment: Environment[Saga] = Environment(
            self.prone, life, OPTIONS, threading.Event(), self.clock, Observer()
        )

        def begin(context: Any, saga: Saga, asked_at: float) -> SimulatedRun:
            run = SimulatedRun(environment, context, saga, msgspec.convert(saga.data, Memory), asked_at=asked_at)
            run.simulation = self
            return run

        return Engine(environment, Knowledge({"simulated": self.recipe}), begin)

    def _continue(self) -> None:
        """A new process does what it can with the saga."""
        engine = self._process()
        self._at_work.append(engine)
        self._engines.append(engine)
        try:
            if self.recipe.attended and len(self._engines) == 1:
                self.answer = engine.carry_out(None, self._wanted(), admit=lambda _transaction: None)
            else:
                engine.run(None, ID)
        except (errors.TakenOver, errors.DatabaseFailed):
            # It lives on, and undoes what came too late.
            pass
        except Crash:
            self._engines.remove(engine)
            # What it did too late, and died before it knew, is left to an audit.
            self._crashed = True
        finally:
            self._at_work.pop()

    def _wanted(self) -> Any:
        """An attended saga, which nobody has written down yet."""
        kind = (
            Saga
            if isinstance(self.journal, JournalInMemory)
            else partial(Operation, migration_uuid=ID, instance_uuid=ID, steps=[])
        )
        return kind(id=ID, recipe=self.recipe.name)

    def run(self) -> Saga:
        """Until the saga has ended; raises AssertionError if it never does.

        One that was never written down has nothing of it in the world: it counts as failed.
        """
        for _life in range(60):
            if self.journal.states([ID]).get(ID) in ENDED:
                break
            self._continue()
            if not self.journal.states([ID]):
                assert not self.world.kept
                self.world.restored += 1
                return Saga(id=ID, recipe=self.recipe.name, state=SagaState.FAILED)
            self.clock.seconds += LEASE + 1
        if self._crashed and self._froze:
            self._undo_late(None)
        for engine in self._engines:
            engine.late.look(lambda work: work())
        saga = self.journal.get(ID)
        assert saga.state in ENDED, f"it never ends: {saga}"
        return saga

    def _rolled_back(self, _run: SimulatedRun, _cause: errors.CausewayError) -> None:
        self.at("before all is as it was")
        self.world.restored += 1

    def _undo_late(self, run: SimulatedRun | None) -> None:
        """What the journal does not know of. Whoever is ordered to undo it refuses an epoch that is over."""
        if run is not None and not self._owns(run):
            self.complaints.append("what came too late is undone under an older epoch")
        known = set(msgspec.convert(self.journal.get(ID).data, Memory).made.values())
        for thing in [thing for thing in self.world.kept if thing not in known]:
            del self.world.kept[thing]

    # the judge

    def _owns(self, run: SimulatedRun) -> bool:
        return self.journal.get(ID).epoch == run.saga.epoch

    def judge_do(self, run: SimulatedRun, step: Making) -> None:
        """Steps are done in order, and only while the saga goes forward."""
        if not self._owns(run):
            return
        saga = self.journal.get(ID)
        if saga.state is not SagaState.RUNNING:
            self.complaints.append(f"{step.name} is done while the saga is {saga.state}")
        before = self.recipe.steps[: self.recipe.index(step.name)]
        self.complaints += [
            f"{step.name} is done before {each.name}" for each in before if not self.world.of(each.name)
        ]

    def judge_undo(self, run: SimulatedRun, step: Making) -> None:
        """Steps are undone latest first, and never behind the pivot."""
        if not self._owns(run):
            return
        if self.journal.get(ID).pivoted:
            self.complaints.append(f"{step.name} is undone after the pivot")
        after = self.recipe.steps[self.recipe.index(step.name) + 1 :]
        self.complaints += [
            f"{step.name} is undone before {each.name}"
            for each in after
            if any(thing in self.journal.get(ID).data["made"].values() for thing in self.world.of(each.name))
        ]
