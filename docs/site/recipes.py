"""Pictures of the recipes, made from the recipes themselves: their steps, where each works, the pivot, and what is undone."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, cast

from causeway.operations.recipes import RECIPES
from causeway.sagas.memory import known_at_start
from causeway.sagas.recipe import Recipe, Step
from docs.site.sequence import Diagram, Heading, Message, Row, Rule

CONDUCTOR, RECORDS, SOURCE, TARGET, HOST = "conductor", "records", "source", "target", "host"
LANES = {
    CONDUCTOR: "conductor",
    RECORDS: "records and services",
    SOURCE: "source host",
    TARGET: "target host",
    HOST: "the server's host",
}
# What a step's `where` reads of its run -> the lane.
WHERE = {
    "memory.target_host": TARGET,
    "memory.place.host": TARGET,
    "target.host": TARGET,
    "memory.source_host": SOURCE,
    "instance.host": HOST,
    "memory.host": HOST,
}
PIVOT = "pivot: a failure above undoes the steps, the last one first; below, the recipe only goes forward"


class _Reading:
    """Stands for a run, and for everything in it: knows by which attributes it was reached."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> _Reading:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Reading(f"{self._path}.{name}".lstrip("."))

    def __call__(self, *_arguments: object, **_options: object) -> _Reading:
        return self

    def __str__(self) -> str:
        return self._path


def lane(step: Step[Any]) -> str:
    """The lane of the host that a step works on, by its own `where`. Raises KeyError for one that no lane is known for."""
    where = cast(Any, step.where(cast(Any, _Reading())))
    return RECORDS if where is None else WHERE[str(where)]


def says(step: Step[Any]) -> str:
    """The first sentence of the step's docstring; of a step without one, that of the step that it extends."""
    text = inspect.getdoc(type(step)) or ""
    paragraph = " ".join(text.split("\n\n")[0].split()).replace("`", "")
    return re.split(r"(?<=[.;]) ", paragraph)[0].rstrip(".;")


def diagram(recipe: Recipe[Any]) -> Diagram:
    """The picture of one recipe."""
    rows: list[Row] = []
    used = {CONDUCTOR}
    for number, step in enumerate(recipe.steps, 1):
        at = lane(step)
        used.add(at)
        only = f" (only {step.condition.said})" if step.condition is not None else ""
        makes = ", ".join(sorted(str(thing) for thing in step.makes))
        rows += [
            Heading(f"{number}  {step.name}{only}", says(step)),
            Message(CONDUCTOR, at, f"do: makes {makes}" if makes else "do"),
        ]
        if number <= recipe.behind_pivot and type(step).undo is not Step.undo:
            rows.append(Message(CONDUCTOR, at, "undo", dashed=True))
        if step.name in (recipe.pivot, recipe.other_pivot):
            rows.append(Rule(PIVOT))
    return Diagram(recipe.name, {key: shown for key, shown in LANES.items() if key in used}, rows)


def diagrams() -> dict[str, Diagram]:
    """All recipes: name -> picture."""
    return {name: diagram(recipe) for name, recipe in RECIPES.items()}


def memory_of(recipe: Recipe[Any]) -> list[str]:
    """What is known at the start of a recipe, and a table of what its steps read and write."""
    known = _named(known_at_start(recipe.memory))
    after = f", and all that `{recipe.after.name}` wrote" if recipe.after is not None else ""
    rows = [
        f"| {step.name} | {_named(recipe.read_by(step), step.reads_if_any)} | {_named(step.writes)} |"
        for step in recipe.steps
    ]
    return [
        f"Known at the start: {known or 'nothing'}{after}.\n",
        "| step | reads | writes |\n|---|---|---|",
        *rows,
        "",
    ]


def _named(fields: Iterable[str], if_any: Iterable[str] = ()) -> str:
    return ", ".join([f"`{name}`" for name in sorted(fields)] + [f"(`{name}`)" for name in sorted(if_any)])


def page(pictures: str) -> str:
    """The Markdown page with all of them. ``pictures``: the folder with NAME.svg, from the page."""
    parts = [
        "# The recipes, step by step\n",
        "These pictures are made from the recipes of this release, by the program that makes this site. An arrow goes to where a",
        "step works; a dashed one is its undo, if it has one. [Moves](moves.md) and [Operations](operations.md) explain them.\n",
        "Below each picture: what the saga knows at its start, and what each step reads and writes of its memory. Fields in",
        "brackets are read only if there is something in them.\n",
    ]
    for name, drawn in diagrams().items():
        recipe = RECIPES[name]
        older = ", ".join(map(str, sorted(recipe.continues)))
        continues = f"; continues sagas of version {older}" if older else ""
        continues += "".join(f"; of `{each.name}` {each.version}" for each in recipe.formers)
        alt = f"The steps of {name}: {drawn.description}".replace("[", "(").replace("]", ")")
        parts.append(f"## {name}\n\nVersion {recipe.version}{continues}.\n\n![{alt}]({pictures}/{name}.svg)\n")
        parts += memory_of(recipe)
    return "\n".join(parts)
