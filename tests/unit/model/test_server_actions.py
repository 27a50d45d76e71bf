"""The table of actions, as a whole: its rows agree with one another, and with what excludes what."""

from __future__ import annotations

import pytest

from causeway.model import server_actions
from causeway.model.exclusion import WORK_OF_TASK, tasks_beside
from causeway.model.operation_kinds import KINDS
from causeway.model.server_actions import GuestAction, HostCheck, ServerAction
from causeway.model.states import TaskState, VmState

ROWS = {name: each for name, each in vars(server_actions).items() if isinstance(each, ServerAction)}
ON_GUESTS = {name: each for name, each in ROWS.items() if isinstance(each, GuestAction)}
# What begins beside more, or less, than others of its kind.
OWN_RULES = {"HARD_REBOOT", "EVACUATE"}


def test_all_rows_are_seen() -> None:
    assert len(ROWS) > 35
    assert len(ON_GUESTS) == 11


@pytest.mark.parametrize("name", sorted(set(ROWS) - OWN_RULES))
def test_an_action_begins_beside_what_its_task_allows(name: str) -> None:
    row = ROWS[name]
    if row.begins is not None:
        assert row.task == tasks_beside(WORK_OF_TASK[row.begins])


def test_a_hard_reboot_breaks_into_all_but_the_change_of_a_password() -> None:
    assert server_actions.HARD_REBOOT.task == frozenset(
        {
            None,
            TaskState.REBOOTING,
            TaskState.REBOOT_PENDING,
            TaskState.REBOOT_STARTED,
            TaskState.REBOOTING_HARD,
            TaskState.RESUMING,
            TaskState.UNPAUSING,
            TaskState.PAUSING,
            TaskState.SUSPENDING,
        }
    )


@pytest.mark.parametrize("name", ON_GUESTS)
def test_the_conductor_finds_the_task_that_the_api_has_set(name: str) -> None:
    row = ON_GUESTS[name]
    assert row.begins is None or row.begins in row.meanwhile
    assert all(WORK_OF_TASK[task] for task in row.meanwhile)


@pytest.mark.parametrize("name", ON_GUESTS)
def test_what_changes_a_guest_has_a_task_meanwhile(name: str) -> None:
    row = ON_GUESTS[name]
    assert row.becomes is None or row.begins is not None


def test_tasks_of_operations_are_those_of_their_actions() -> None:
    begun = {row.begins for row in ROWS.values() if not isinstance(row, GuestAction)}
    assert {kind.task for kind in KINDS.values()} - begun == {TaskState.SCHEDULING, TaskState.DELETING}


def test_an_action_without_a_task_leaves_the_one_that_there_is() -> None:
    assert server_actions.TRIGGER_CRASH_DUMP.task_change == {}
    assert server_actions.GUEST_TRIM.task_change == {}
    assert server_actions.PAUSE.task_change == {"task_state": TaskState.PAUSING}


def test_states_are_left_out_for_some_callers() -> None:
    before = server_actions.ATTACH_VOLUME.without(VmState.SHELVED, VmState.SHELVED_OFFLOADED)
    assert server_actions.ATTACH_VOLUME.allows(VmState.SHELVED)
    assert not before.allows(VmState.SHELVED)
    assert before.allows(VmState.ACTIVE)
    assert server_actions.LOCK.without(VmState.ACTIVE).allows(VmState.BUILDING)


def test_nova_looks_at_the_host_first_for_power() -> None:
    first = {name for name, row in ROWS.items() if row.host is HostCheck.BEFORE_STATES}
    assert first == {"START", "STOP", "REBOOT", "HARD_REBOOT"}
