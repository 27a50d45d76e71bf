"""What steps really read and write of their operation's memory, held against what they declare (`Step.reads`, `Step.writes`)."""

from __future__ import annotations

import dataclasses
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from causeway.operations.recipes import RECIPES
from causeway.sagas.recipe import Step
from causeway.sagas.run import Run


@dataclass
class Seen:
    """step -> the fields that it read, and those that it wrote."""

    reads: dict[type[Step[Any]], set[str]] = field(default_factory=lambda: defaultdict(set))
    writes: dict[type[Step[Any]], set[str]] = field(default_factory=lambda: defaultdict(set))

    def undeclared(self) -> list[str]:
        """What a step read that it neither declares to read nor to write, and what it wrote without saying so; told once."""
        found = [
            f"{step.name} reads {name}"
            for step, names in list(self.reads.items())
            for name in sorted(names - step.reads - step.writes)
        ]
        found += [
            f"{step.name} writes {name}"
            for step, names in list(self.writes.items())
            for name in sorted(names - step.writes)
        ]
        self.reads.clear()
        self.writes.clear()
        return sorted(found)


class Watch:
    """Watches every step of every recipe from its making on, whatever runs them."""

    def __init__(self) -> None:
        self.seen = Seen()
        # ``step`` and ``memory``: at which the thread is.
        self._local = threading.local()
        steps = {type(step): step for recipe in RECIPES.values() for step in recipe.steps}
        for kind in steps:
            for name in ("do", "undo"):
                setattr(kind, name, self._noting_step(kind, getattr(kind, name)))
        for memory in {recipe.memory for recipe in RECIPES.values()}:
            self._watch(memory)
        original = Run.save

        def save(run: Run[Any, Any], **given: Any) -> None:
            # It writes all fields down.
            with self._inside(None, None):
                original(run, **given)

        Run.save = save  # type: ignore[method-assign]

    @contextmanager
    def _inside(self, step: type[Step[Any]] | None, memory: Any) -> Iterator[None]:
        local = self._local
        before = getattr(local, "step", None), getattr(local, "memory", None)
        local.step, local.memory = step, memory
        try:
            yield
        finally:
            local.step, local.memory = before

    def _noting_step(self, kind: type[Step[Any]], original: Callable[..., None]) -> Callable[..., None]:
        def noting(step: Step[Any], run: Any) -> None:
            with self._inside(kind, run.memory):
                original(step, run)

        return noting

    def _step_with(self, memory: Any) -> type[Step[Any]] | None:
        """The step that the thread is in, if that is its operation's memory, and no other's that it reads."""
        found: type[Step[Any]] | None = getattr(self._local, "step", None)
        return found if getattr(self._local, "memory", None) is memory else None

    def _watch(self, memory: type[Any]) -> None:
        names = {each.name for each in dataclasses.fields(memory)}
        read, write = memory.__getattribute__, memory.__setattr__

        def reading(thing: Any, name: str) -> Any:
            step = self._step_with(thing)
            if step is not None and name in names:
                self.seen.reads[step].add(name)
            return read(thing, name)

        def writing(thing: Any, name: str, value: Any) -> None:
            step = self._step_with(thing)
            if step is not None and name in names:
                self.seen.writes[step].add(name)
            write(thing, name, value)

        memory.__getattribute__ = reading
        memory.__setattr__ = writing
