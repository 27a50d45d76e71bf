"""The table of what may be done to a server while something else is done to it, as a whole."""

from __future__ import annotations

import pytest

from causeway.model import operations
from causeway.model.exclusion import ACCEPTED, WORK_OF_TASK, Rule, Work, rule, tasks_beside
from causeway.model.operation_kinds import KINDS
from causeway.model.states import MOVE_TASKS, TaskState

# Rows: asked for. Columns: under way. B beside, - refused, A after it, E at its end (refused while the server has its task),
# I instead of it (or after), C refused and it is cancelled.
COLUMNS = """
     build delete move confirm revert rebuild evacuate rescue soft_delete shelve unshelve image device power guest hard_reboot
     volume volume_image snapshot
"""
UNDER_WAY = COLUMNS.split()
MATRIX = """
delete         I  B  I  A  A  I  I  I  I  I  I  I  B  B  B  B  I  I  I
move           E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
confirm        E  B  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
revert         E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
rebuild        E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
evacuate       -  -  -  -  -  C  C  C  C  C  C  C  B  B  B  B  C  C  C
rescue         E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
soft_delete    E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
shelve         E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
unshelve       E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
image          E  -  E  E  E  E  E  E  E  E  E  E  B  -  -  -  E  E  E
device         -  -  -  -  -  -  -  -  -  -  -  -  B  -  -  -  -  -  -
power          -  -  -  -  -  -  -  -  -  -  -  -  B  -  -  -  -  -  -
guest          -  -  -  -  -  -  -  -  -  -  -  -  B  -  -  -  -  -  -
hard_reboot    -  -  -  -  -  -  -  -  -  -  -  -  B  -  B  B  -  -  -
device_record  -  B  -  -  -  B  B  B  B  B  B  B  B  B  B  B  B  B  B
record         B  B  B  B  B  B  B  B  B  B  B  B  B  B  B  B  B  B  B
volume         E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  E  E
volume_image   E  -  E  E  E  E  E  E  E  E  E  E  B  -  -  -  E  E  E
snapshot       E  -  E  E  E  E  E  E  E  E  E  E  -  -  -  -  E  B  E
"""
MEANS = {
    "B": Rule.BESIDE,
    "-": Rule.REFUSED,
    "A": Rule.AFTER,
    "E": Rule.AT_ITS_END,
    "I": Rule.INSTEAD,
    "C": Rule.CANCELS,
}
ROWS = {row.split()[0]: row.split()[1:] for row in MATRIX.strip().splitlines()}


@pytest.mark.parametrize("asked", ROWS)
def test_each_kind_of_work_excludes_what_the_table_says(asked: str) -> None:
    found = [rule(Work[asked.upper()], Work[other.upper()]) for other in UNDER_WAY]
    assert found == [MEANS[sign] for sign in ROWS[asked]]


def test_everything_that_can_be_asked_for_has_a_row() -> None:
    # A build is a server's first work: nothing is under way beside it.
    assert {Work[name.upper()] for name in ROWS} == set(Work) - {Work.BUILD}


def test_every_task_is_some_work() -> None:
    assert WORK_OF_TASK.keys() == set(TaskState)


def test_an_operation_is_the_same_work_as_its_task() -> None:
    for name, kind in KINDS.items():
        # Images of servers on volumes have the task of other images.
        if kind.task is not None and name not in (operations.EVACUATE, operations.CREATE_VOLUME_IMAGE):
            assert WORK_OF_TASK[kind.task] is kind.work


def test_tasks_follow_from_the_table() -> None:
    assert tasks_beside(Work.REBUILD) == {None}
    assert tasks_beside(Work.RECORD) == {None, *TaskState}
    assert not tasks_beside(Work.DEVICE_RECORD) & MOVE_TASKS
    assert TaskState.PAUSING in tasks_beside(Work.HARD_REBOOT)
    assert TaskState.POWERING_OFF not in tasks_beside(Work.HARD_REBOOT)


def test_who_is_waited_for_is_accepted() -> None:
    assert Rule.REFUSED not in ACCEPTED and Rule.CANCELS not in ACCEPTED
