"""What the matrix runs: every operation, in every reach, with every kind of disk, as it succeeds and as it is undone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

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
        """A resize begins with a recipe that becomes one of the others when its destination is chosen."""
        reach = "same" if self.reach == "host" else self.reach
        if self.operation == "drain":
            return ("resize", f"{reach}_cell_resize", f"{reach}_cell_confirm")
        if self.operation == "drain-back":
            return (f"{reach}_cell_revert",)
        return ("resize",) * (self.operation == "resize") + (f"{reach}_cell_{self.operation}",)

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
    ("resize", "cross"): "cross_cell_resize.SwitchInstanceMapping.do.before",
    ("resize", "same"): "same_cell_resize.MoveRecord.do.before",
    ("resize", "host"): "same_cell_resize.MoveRecord.do.before",
    ("confirm", "cross"): "cross_cell_confirm.CheckTarget.do.after",
    ("confirm", "same"): "same_cell_confirm.CheckTarget.do.after",
    ("confirm", "host"): "same_cell_confirm.CheckTarget.do.after",
    ("revert", "cross"): "cross_cell_revert.ReturnRecords.do.after",
    ("revert", "same"): "same_cell_revert.BeginRevert.do.before",
    ("revert", "host"): "same_cell_revert.BeginRevert.do.before",
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
