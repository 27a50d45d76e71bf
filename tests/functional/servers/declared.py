"""What steps really do, held against what they declare.

What they read and write of their operation's memory (`Step.reads`, `Step.writes`), and what they make outside of the journal
(`Step.makes`): on hosts, in Placement, and in the network and volume services.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient
from causeway.clients.volume import VolumeClient
from causeway.model.things import Thing
from causeway.operations.recipes import RECIPES
from causeway.rpc.compute import ComputeClient
from causeway.rpc.scheduler import SchedulerClient
from causeway.sagas.memory import fields_of
from causeway.sagas.recipe import Step
from causeway.sagas.run import Run

# Who is asked for what -> what is there then.
MAKERS: dict[type[Any], dict[str, set[Thing]]] = {
    NetworkClient: {"create_port": {Thing.PORT}, "bind_port": {Thing.BINDING}, "create_binding": {Thing.BINDING}},
    VolumeClient: {
        "create": {Thing.VOLUME},
        "create_attachment": {Thing.ATTACHMENT},
        "create_snapshot": {Thing.SNAPSHOT},
    },
    ImageClient: {"create": {Thing.IMAGE}},
    PlacementClient: {
        "claim": {Thing.ALLOCATION},
        "claim_for_move": {Thing.ALLOCATION},
        "set_allocations": {Thing.ALLOCATION},
    },
    SchedulerClient: {"select_destinations": {Thing.ALLOCATION}},
    ComputeClient: {
        "prep_snapshot_based_resize_at_dest": {Thing.CLAIM},
        "finish_snapshot_based_resize_at_dest": {Thing.DISKS, Thing.GUEST},
        "wake_guest_at_dest": {Thing.DISKS, Thing.GUEST},
        "build_guest": {Thing.DISKS, Thing.GUEST},
        "rebuild_guest": {Thing.DISKS, Thing.GUEST},
        "upload_disk": {Thing.IMAGE},
        "start_guest": {Thing.GUEST},
        "restore_guest": {Thing.GUEST},
        "rescue_guest": {Thing.DISKS, Thing.GUEST},
        "unrescue_guest": {Thing.GUEST},
        "connect_volume": {Thing.DEVICE},
        "plug_port": {Thing.DEVICE},
    },
}


@dataclass
class Seen:
    """step -> the fields that it read beside those in `Step.reads`, and those that it wrote; what it made."""

    reads: dict[type[Step[Any]], set[str]] = field(default_factory=lambda: defaultdict(set))
    writes: dict[type[Step[Any]], set[str]] = field(default_factory=lambda: defaultdict(set))
    makes: dict[type[Step[Any]], set[str]] = field(default_factory=lambda: defaultdict(set))

    def undeclared(self) -> list[str]:
        """What steps read, wrote or made that they do not declare; reported once."""
        found = [
            f"{step.name} reads {name}"
            for step, names in list(self.reads.items())
            for name in sorted(names - step.reads_if_any - step.writes)
        ]
        found += [
            f"{step.name} writes {name}"
            for step, names in list(self.writes.items())
            for name in sorted(names - step.writes)
        ]
        found += [
            f"{step.name} makes {thing}"
            for step, things in list(self.makes.items())
            for thing in sorted(things - step.makes)
        ]
        self.clear()
        return sorted(found)

    def clear(self) -> None:
        for seen in (self.reads, self.writes, self.makes):
            seen.clear()


# The step that a task is in and its operation's memory; whether it does the step, and does not undo it.
_inside: ContextVar[tuple[type[Step[Any]] | None, Any, bool]] = ContextVar("inside", default=(None, None, False))


class Watch:
    """Watches every step of every recipe from its making on, whatever runs them."""

    def __init__(self) -> None:
        self.seen = Seen()
        steps = {type(step): step for recipe in RECIPES.values() for step in recipe.steps}
        for kind in steps:
            for name in ("do", "undo"):
                setattr(kind, name, self._noting_step(getattr(kind, name), goes_forward=name == "do"))
        for maker, methods in MAKERS.items():
            for name, things in methods.items():
                setattr(maker, name, self._noting_things(things, getattr(maker, name)))
        for memory in {recipe.memory for recipe in RECIPES.values()}:
            self._watch(memory)
        original = Run.save

        def save(run: Run[Any, Any], **given: Any) -> None:
            # It writes all fields down.
            with self._inside(None, None):
                original(run, **given)

        Run.save = save  # type: ignore[method-assign,assignment]
        deletes = PlacementClient.delete_hidden

        def delete_hidden(*given: Any) -> None:
            # It claims something only to delete that again.
            with self._inside(None, None):
                deletes(*given)

        PlacementClient.delete_hidden = delete_hidden  # type: ignore[method-assign,assignment]

    @contextmanager
    def _inside(self, step: type[Step[Any]] | None, memory: Any, *, goes_forward: bool = False) -> Iterator[None]:
        before = _inside.set((step, memory, goes_forward))
        try:
            yield
        finally:
            _inside.reset(before)

    def _noting_step(self, original: Callable[..., None], *, goes_forward: bool) -> Callable[..., None]:
        def noting(step: Step[Any], run: Any) -> None:
            with self._inside(type(step), run.memory, goes_forward=goes_forward):
                original(step, run)

        return noting

    def _noting_things(self, things: set[Thing], original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def noting(*given: Any, **more: Any) -> Any:
            step, _memory, goes_forward = _inside.get()
            if step is not None and goes_forward:
                self.seen.makes[step] |= things
            return original(*given, **more)

        return noting

    def _step_with(self, memory: Any) -> type[Step[Any]] | None:
        """The step that the task is in, if that is its operation's memory, and no other's that it reads."""
        step, of_step, _goes_forward = _inside.get()
        return step if of_step is memory else None

    def _watch(self, memory: type[Any]) -> None:
        names = {each.name for each in dataclasses.fields(memory)}
        read: Any = memory.__getattribute__
        write: Any = memory.__setattr__
        declared: dict[type[Step[Any]], frozenset[str]] = {}

        def reading(thing: Any, name: str) -> Any:
            step = self._step_with(thing)
            if step is not None and name in names:
                if step not in declared:
                    # A property that the step declares stands for the fields that it reads.
                    declared[step] = fields_of(memory, step.reads)
                if name not in declared[step]:
                    self.seen.reads[step].add(name)
            return read(thing, name)

        def writing(thing: Any, name: str, value: Any) -> None:
            step = self._step_with(thing)
            if step is not None and name in names:
                self.seen.writes[step].add(name)
            write(thing, name, value)

        memory.__getattribute__ = reading  # type: ignore[assignment]
        memory.__setattr__ = writing  # type: ignore[assignment]
