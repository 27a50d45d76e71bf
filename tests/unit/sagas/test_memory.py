"""Steps read of their saga's memory what was given at its start, or what a step before has written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from causeway.errors import CausewayError
from causeway.operations.recipes import RECIPES
from causeway.sagas.memory import Given, known_at_start
from causeway.sagas.recipe import Recipe, Step


@dataclass
class CopyMemory:
    source: str
    rate: Given[int | None] = None
    skipped: Given[list[str]] = field(default_factory=list)
    copied: int = 0
    checked: list[str] = field(default_factory=list)


class _Step(Step[Any]):
    name: ClassVar[str]

    def do(self, run: Any) -> None:
        raise NotImplementedError


class Copy(_Step):
    name = "Copy"
    reads = frozenset({"rate", "skipped", "source"})
    reads_if_any = frozenset({"checked"})
    writes = frozenset({"copied"})


class Check(_Step):
    name = "Check"
    reads = frozenset({"copied"})
    writes = frozenset({"checked"})


def nothing(_run: Any, _cause: CausewayError) -> None:
    return


COPY: Recipe[Any] = Recipe("copy", (Copy(), Check()), pivot="", rolled_back=nothing, memory=CopyMemory)


def test_what_is_known_at_the_start_is_what_must_or_may_be_given() -> None:
    assert known_at_start(CopyMemory) == {"source", "rate", "skipped"}


def test_a_step_that_comes_too_early_is_found() -> None:
    assert COPY.unwritten() == []
    assert replace(COPY, steps=(Check(), Copy())).unwritten() == ["Check reads copied"]


def test_a_step_reads_what_the_saga_before_has_written() -> None:
    check = replace(COPY, steps=(Check(),))
    assert check.unwritten() == ["Check reads copied"]
    assert replace(check, after=COPY).unwritten() == []


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_its_steps_in_an_order_that_works(name: str) -> None:
    assert RECIPES[name].unwritten() == []


@pytest.mark.parametrize("name", RECIPES)
def test_steps_declare_fields_of_their_memory(name: str) -> None:
    recipe = RECIPES[name]
    known = {each.name for each in fields(recipe.memory)}
    for step in recipe.steps:
        assert recipe.read_by(step) | step.reads_if_any | step.writes <= known, step.name
        assert not step.reads_if_any & (recipe.read_by(step) | step.writes), step.name


def too_early() -> Iterator[tuple[str, str, str]]:
    """(recipe, step, the step whose notes it needs), of all recipes."""
    for name, recipe in RECIPES.items():
        known = set(known_at_start(recipe.memory))
        if recipe.after is not None:
            known.update(*(step.writes for step in recipe.after.steps))
        for place, writer in enumerate(recipe.steps):
            new = writer.writes - known
            known |= new
            for reader in recipe.steps[place + 1 :]:
                if (recipe.read_by(reader) - reader.writes) & new:
                    yield name, reader.name, writer.name


@pytest.mark.parametrize(("name", "reader", "writer"), too_early())
def test_steps_of_every_recipe_that_change_places_are_found(name: str, reader: str, writer: str) -> None:
    recipe = RECIPES[name]
    steps = list(recipe.steps)
    moved = steps.pop(recipe.index(reader))
    steps.insert(recipe.index(writer), moved)
    wrong = replace(recipe, steps=tuple(steps)).unwritten()
    assert any(each.startswith(f"{reader} reads ") for each in wrong)


def test_many_steps_need_another_one() -> None:
    assert len(set(too_early())) > 40
