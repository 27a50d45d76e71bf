"""The table of operations: a row for each recipe, which agrees with its actions and with former names."""

from __future__ import annotations

import pytest

from causeway.model import operations
from causeway.model.exclusion import Work
from causeway.model.operation_kinds import ACTIONS, KINDS, find_kind, kind_of, recipes_where
from causeway.operations.recipes import RECIPES


def test_every_row_has_a_recipe_and_every_recipe_a_row() -> None:
    assert KINDS.keys() == RECIPES.keys()


def test_every_name_of_an_operation_has_a_row() -> None:
    names = {value for name, value in vars(operations).items() if name.isupper() and isinstance(value, str)}
    assert KINDS.keys() == names


@pytest.mark.parametrize("former", operations.OF_0_1_0)
def test_a_name_of_0_1_0_is_the_present_kind(former: str) -> None:
    assert kind_of(former) is KINDS[operations.OF_0_1_0[former]]


def test_an_operation_of_a_newer_release_has_no_row() -> None:
    assert find_kind("of_a_newer_release") is None
    with pytest.raises(KeyError):
        kind_of("of_a_newer_release")


def test_questions_to_a_journal_name_former_recipes_too() -> None:
    assert set(recipes_where(lambda kind: kind.work is Work.CONFIRM)) == {
        "confirm_resize",
        "same_cell_confirm",
        "cross_cell_confirm",
    }


@pytest.mark.parametrize("name", KINDS)
def test_every_action_that_requests_an_operation_gives_the_server_the_same_task(name: str) -> None:
    kind = KINDS[name]
    assert {action.begins for action in kind.actions} <= {kind.task}


def test_nothing_waits_for_attaches_and_detaches_and_a_delete() -> None:
    not_waited_for = set(recipes_where(lambda kind: not kind.is_waited_for))
    assert not_waited_for == {"delete", *recipes_where(lambda kind: kind.is_of_device)}


def test_only_snapshots_and_devices_may_begin_beside_the_image_of_a_server_on_a_volume() -> None:
    beside = {kind.work for kind in KINDS.values() if kind.may_begin_beside_volume_image}
    # An image that is requested during another one is refused, and a delete waits.
    assert beside == {Work.SNAPSHOT}


def test_only_what_the_action_of_a_request_records_is_among_the_actions() -> None:
    # A user may request attaches and detaches meanwhile: their actions say nothing of an operation that has a task.
    assert not {"attach_volume", "detach_volume", "attach_interface", "detach_interface"} & set(ACTIONS)
    assert {"resize", "migrate", "confirmResize", "createBackup", "delete", "evacuate"} <= set(ACTIONS)


def test_a_kind_follows_a_finished_move_if_its_recipe_does() -> None:
    for name, kind in KINDS.items():
        assert (kind.migration_status is not None) == (RECIPES[name].after is not None)
