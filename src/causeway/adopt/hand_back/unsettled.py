"""What Nova could not continue with: to be settled here first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from causeway.model import rescue
from causeway.model.instance import Instance
from causeway.model.operations import Operation
from causeway.model.states import VmState


@dataclass(frozen=True)
class Unsettled:
    """``why``: with what to do."""

    uuid: str
    name: str
    why: str


def unsettled(instance: Instance, operations: Sequence[Operation], *, nova_state: str | None) -> Iterator[Unsettled]:
    """``operations``: those of the server that have not ended. ``nova_state``: the state in Nova's record, if it has one."""
    for why in _reasons(instance, operations, nova_state):
        yield Unsettled(instance.uuid, instance.display_name, why)


def _reasons(instance: Instance, operations: Sequence[Operation], nova_state: str | None) -> Iterator[str]:
    if operations:
        yield f"operation {operations[0].id} works on it: wait until it has ended"
    elif instance.task_state is not None:
        yield f"its task {instance.task_state} is running: wait until it has ended, or reset its state"
    if instance.vm_state is VmState.RESIZED:
        yield "its resize waits for confirm or revert: do either"
    if instance.vm_state is VmState.SUSPENDED and nova_state != VmState.SUSPENDED.value:
        yield "its memory is not where Nova would look for it: resume it; Nova may suspend it again"
    if instance.vm_state is VmState.RESCUED and rescue.SINCE in instance.system_metadata:
        yield "Nova has no definition to unrescue it to: unrescue it"


__all__ = ["Unsettled", "unsettled"]
