"""docs/faults-of-parts.md says for how long each step of each operation is retried."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.operations.recipes import RECIPES
from causeway.running.patience import ServerStep, While, patience_while
from causeway.sagas.retries import Patience

PAGE = (Path(__file__).parents[3] / "docs/faults-of-parts.md").read_text()
SECTION = PAGE.partition("## How long an operation waits")[2].partition("\n## ")[0]
OPTIONS: Any = SimpleNamespace(patience=600.0, patience_while_off=60.0, stuck_retry_interval=30.0)


def rows() -> list[list[str]]:
    lines = [line for line in SECTION.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(steps: str) -> set[tuple[str, str]]:
    pairs = (part.partition(": ") for part in steps.split("; ") if ": " in part)
    return {(recipe, step) for recipe, _, names in pairs for step in names.split(", ")}


def run(*, was_running: bool) -> Any:
    memory = SimpleNamespace(was_running=was_running, held_until=None)
    conf = SimpleNamespace(moves=OPTIONS)
    return SimpleNamespace(
        memory=memory, unguarded=SimpleNamespace(conf=conf), environment=SimpleNamespace(options=OPTIONS)
    )


def steps_with(wanted: Patience, *, was_running: bool = True) -> set[tuple[str, str]]:
    present = run(was_running=was_running)
    return {
        (name, step.name)
        for name, recipe in RECIPES.items()
        for step in recipe.steps
        if step.patience(present) == wanted
    }


def seconds(text: str) -> float:
    """The seconds that a cell of the table names: none, some, or without end."""
    found = re.search(r"(\d+) s", text)
    if found:
        return float(found[1])
    return math.inf if "until" in text else 0.0


def test_the_table_says_for_how_long() -> None:
    said = {label: (seconds(retried), seconds(pause)) for label, retried, pause, _ in rows()}
    policy = {what: patience_while(what, OPTIONS) for what in While}
    assert said == {what.value: (each.seconds, each.longest_pause) for what, each in policy.items()}


def test_each_step_that_differs_is_in_its_row() -> None:
    said = {label: named(steps) for label, _, _, steps in rows()[1:]}
    present = run(was_running=True)
    counted: dict[str, set[tuple[str, str]]] = {label: set() for label in said}
    for name, recipe in RECIPES.items():
        for step in recipe.steps:
            what = step.retried_while(present) if isinstance(step, ServerStep) else While.GUEST_RUNS
            if what is not While.GUEST_RUNS:
                counted[what.value].add((name, step.name))
    assert counted == said


def test_every_step_follows_the_policy() -> None:
    policy = [patience_while(what, OPTIONS) for what in While]
    every = {(name, step.name) for name, recipe in RECIPES.items() for step in recipe.steps}
    assert set().union(*(steps_with(patience) for patience in policy)) == every


def test_a_guest_that_was_off_waits_as_long_as_one_that_runs() -> None:
    present = run(was_running=False)
    steps = [(name, step) for name, recipe in RECIPES.items() for step in recipe.steps if isinstance(step, ServerStep)]
    hurried = {(name, step.name) for name, step in steps if step.retried_while(present) is While.GUEST_IS_OFF}
    # An unrescue always starts the guest.
    assert hurried == {("unrescue", "StartFromOwnDisk")}


@pytest.mark.parametrize("what", While)
def test_only_a_delete_persists_after_unforeseen_errors(what: While) -> None:
    assert patience_while(what, OPTIONS).persists == (what is While.SERVER_IS_DELETED)
