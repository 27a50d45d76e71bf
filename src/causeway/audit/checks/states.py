"""Task states: one is stale if nothing works on the server."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.operation_kinds import KINDS
from causeway.model.states import MOVE_TASKS, TaskState, VmState

# Task states of work in the journal: without an operation nothing works on the server.
JOURNALED = MOVE_TASKS | {kind.task for kind in KINDS.values() if kind.task is not None}
# Task states that are not cleared, since the server would then look complete.
LEFT = {
    TaskState.DELETING: "The server is half deleted: delete it again.",
    TaskState.SOFT_DELETING: "The server is half deleted: delete it again.",
}


def stale_tasks(snapshot: Snapshot) -> Iterator[Disagreement]:
    for record in snapshot.homes:
        task = record.task_state
        if task is None or record.uuid in snapshot.working:
            continue
        if task not in JOURNALED and not snapshot.is_old(record.updated_at):
            continue
        left = LEFT.get(task, "")
        if record.vm_state is VmState.BUILDING:
            left = "The server was never built: delete it."
        yield Disagreement(
            "task_state.stale",
            Severity.ERROR,
            f"task state {task}",
            record.uuid,
            f"The server's task state is {task}, but nobody works on it.",
            None
            if left
            else Fix(
                "clear_task_state", {"uuid": record.uuid, "cell_uuid": record.cell_uuid, "task_state": task.value}
            ),
            left,
        )
