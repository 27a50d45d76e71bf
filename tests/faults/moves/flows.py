"""What the matrix runs: every operation, in every reach, with every kind of disk, as it succeeds and as it is undone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

from causeway.model.operations import CONFIRM_RESIZE, RESIZE, REVERT_RESIZE
from causeway.moves.recipes import WITH_GUEST
from tests.faults.clouds.site import WITH_NUMA


@dataclass(frozen=True)
class Flow:
    """``spoiled_by``: a point that always refuses, so that everything before it is undone.

    ``drain`` and ``drain-back``: a drain of its own moves each server and confirms that; or is rolled back, and reverts it.
    ``is_cut_off``: the hosts do not reach one another any more when the guest is off.
    """

    operation: str
    reach: str
    backing: str
    spoiled_by: str | None = None
    is_cut_off: bool = False

    @property
    def name(self) -> str:
        name = f"{self.reach} {self.operation} {self.backing}"
        return name + (" cut-off" if self.is_cut_off else "") + (" rolled-back" if self.spoiled_by else "")

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the faults of its cases happens to it."""
        return self.spoiled_by is None and not self.is_cut_off

    @property
    def is_drain(self) -> bool:
        return self.operation in ("drain", "drain-back")

    @property
    def rules(self) -> dict[str, Any]:
        """Faults that it meets whenever it comes to them."""
        always = ([self.spoiled_by] if self.spoiled_by else []) + (["disk.fetch.connect"] if self.is_cut_off else [])
        return dict.fromkeys(always, "refuse")

    @property
    def group(self) -> str:
        return f"{self.reach}{'-cell' if self.reach != 'host' else ''} {self.operation}"

    @property
    def recipes(self) -> tuple[str, ...]:
        return {
            "drain": (RESIZE, CONFIRM_RESIZE),
            "drain-back": (REVERT_RESIZE,),
            "resize": (RESIZE,),
            "confirm": (CONFIRM_RESIZE,),
            "revert": (REVERT_RESIZE,),
        }[self.operation]

    def steps(self, recipe: str) -> list[str]:
        """The names of those steps of a recipe that a move of this reach has."""
        run: Any = SimpleNamespace(memory=SimpleNamespace(is_cross_cell=self.reach == "cross"))
        return [step.name for step in WITH_GUEST[recipe].steps if step.belongs_to(run)]

    @property
    def prefixes(self) -> tuple[str, ...]:
        """How the points of its recipes begin."""
        found = [f"{recipe}.{step}." for recipe in self.recipes for step in self.steps(recipe)]
        return (*found, *(f"{recipe}.roll_back." for recipe in self.recipes))

    @property
    def flavors(self) -> tuple[str, str]:
        if self.backing == "disks":
            return ("gen1.disks", "gen2.disks")
        if self.backing == "numa":
            return WITH_NUMA
        return {
            "cross": ("gen1.small", "gen2.small"),
            "same": ("host1.small", "host2.medium"),
            "host": ("host1.small", "host1.medium"),
        }[self.reach]


SPOILERS = {
    ("resize", "cross"): "resize.SwitchInstanceMapping.do.before",
    ("resize", "same"): "resize.MoveRecord.do.before",
    ("resize", "host"): "resize.MoveRecord.do.before",
    ("confirm", "cross"): "confirm_resize.CheckTarget.do.after",
    ("confirm", "same"): "confirm_resize.CheckTarget.do.after",
    ("confirm", "host"): "confirm_resize.CheckTarget.do.after",
    ("revert", "cross"): "revert_resize.ReturnRecords.do.after",
    ("revert", "same"): "revert_resize.BeginRevert.do.before",
    ("revert", "host"): "revert_resize.BeginRevert.do.before",
}
FLOWS = [
    Flow(operation, reach, backing, spoiled)
    for operation, reach, backing in [
        *product(("resize", "confirm", "revert"), ("cross", "same", "host"), ("image", "volume")),
        # with an ephemeral disk, swap and a TPM
        ("resize", "cross", "disks"),
        ("revert", "cross", "disks"),
    ]
    for spoiled in (None, SPOILERS[operation, reach])
]
# Image-backed servers with a NUMA topology, so that hosts claim.
FLOWS += [
    Flow(operation, "cross", "numa", spoiled)
    for operation in ("resize", "confirm", "revert")
    for spoiled in (None, SPOILERS[operation, "cross"])
]
# What is left when the guest is off goes through the image service after all.
FLOWS += [
    Flow("resize", "cross", backing, spoiled, is_cut_off=True)
    for backing in ("image", "disks")
    for spoiled in (None, SPOILERS["resize", "cross"])
]
FLOWS += [Flow(operation, "cross", backing) for operation in ("drain", "drain-back") for backing in ("image", "volume")]
