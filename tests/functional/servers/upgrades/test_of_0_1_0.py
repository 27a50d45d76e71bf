"""Moves that conductors of release 0.1.0 began, with its names of recipes and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.operations.engine import KNOWLEDGE
from causeway.store.api import journal
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.conftest import ProcessDiedError
from tests.functional.servers.dying_threads import SOON_NOTICED, THREADS_DIE

CLOUD = SOON_NOTICED
pytestmark = THREADS_DIE

FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}
# present name -> the name in 0.1.0, of recipes with their versions and of steps
RECIPES = {
    "resize": {"cross": ("cross_cell_resize", 3), "same": ("same_cell_resize", 2)},
    "confirm_resize": {"cross": ("cross_cell_confirm", 2), "same": ("same_cell_confirm", 2)},
    "revert_resize": {"cross": ("cross_cell_revert", 2), "same": ("same_cell_revert", 2)},
}
STEPS = {
    "ReserveTarget": {"cross": "PrepResizeAtDest", "same": "PrepResize"},
    "HandOver": {"cross": "PrepResizeAtSource", "same": "ResizeInstance"},
    "FinishAtTarget": {"cross": "FinishResizeAtDest", "same": "FinishResize"},
    "ReleaseSource": {"cross": "ConfirmResizeAtSource", "same": "ConfirmResize"},
    "DestroyAtTarget": {"cross": "RevertResizeAtDest", "same": "RevertResize"},
    "RestoreAtSource": {"cross": "FinishRevertResizeAtSource", "same": "FinishRevertResize"},
}


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture
def server(cloud: AuditedCloud, reach: str) -> Any:
    return cloud.boot(flavor=FLAVORS[reach][0])


def renamed(cloud: AuditedCloud, server: Any, reach: str) -> None:
    """The journal as 0.1.0 would have written it."""
    move = cloud.moves(server)[-1]
    steps = msgspec.to_builtins(move.steps)
    for step in steps:
        step["step"] = STEPS.get(step["step"], {reach: step["step"]})[reach]
    recipe, version = RECIPES[move.recipe][reach]
    of_operation = journal.OPERATIONS.c.id == move.id
    with cloud.parts.api_database.write() as connection:
        connection.execute(
            journal.OPERATIONS.update().where(of_operation).values(recipe=recipe, recipe_version=version, steps=steps)
        )


@pytest.mark.parametrize("reach", FLAVORS)
@pytest.mark.parametrize("step", ["ReserveTarget", "HandOver", "FinishAtTarget"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_resize_of_0_1_0_is_continued(
    cloud: AuditedCloud, server: Any, at_point: Callable[..., None], reach: str, step: str, when: str
) -> None:
    def die() -> None:
        renamed(cloud, server, reach)
        raise ProcessDiedError

    at_point(f"resize.{step}.do.{when}", die)
    cloud.resized(server, FLAVORS[reach][1])
    assert cloud.moves(server)[-1].recipe == "resize"
    cloud.confirmed(server)
    assert cloud.audit().is_clean


@pytest.mark.parametrize("reach", FLAVORS)
@pytest.mark.parametrize(("end", "step"), [("confirm", "ReleaseSource"), ("revert", "DestroyAtTarget")])
def test_a_confirm_or_revert_of_0_1_0_is_continued(
    cloud: AuditedCloud, server: Any, at_point: Callable[..., None], reach: str, end: str, step: str
) -> None:
    def die() -> None:
        renamed(cloud, server, reach)
        raise ProcessDiedError

    cloud.resized(server, FLAVORS[reach][1])
    at_point(f"{end}_resize.{step}.do.after", die)
    getattr(cloud, f"{end}ed")(server)
    assert cloud.moves(server)[-1].recipe == f"{end}_resize"
    assert cloud.audit().is_clean


@pytest.mark.parametrize("reach", FLAVORS)
def test_a_resize_of_0_1_0_that_waits_can_be_confirmed(cloud: AuditedCloud, server: Any, reach: str) -> None:
    cloud.resized(server, FLAVORS[reach][1])
    renamed(cloud, server, reach)
    cloud.confirmed(server)


# recipe -> its steps in 0.1.0, version 1
WITHOUT_GUEST = {
    "move_records": ["SwitchInstanceMapping", "ShowTarget", "DeleteSourceRecords", "EndMoveOfRecords"],
    "unshelve_across_cells": [
        "SelectHostElsewhere",
        "SwitchInstanceMapping",
        "ShowTarget",
        "DeleteSourceRecords",
        "UnshelveThere",
    ],
}


@pytest.mark.parametrize("recipe", WITHOUT_GUEST)
def test_every_step_of_0_1_0_has_a_step_that_continues_it(recipe: str) -> None:
    present = [KNOWLEDGE.present_name(recipe, step) for step in WITHOUT_GUEST[recipe]]
    assert present == [step.name for step in KNOWLEDGE.recipes[recipe].steps]


@pytest.mark.parametrize("step", ["SelectHostElsewhere", "MoveRecords", "ShowRecords", "DeleteSourceRecords"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_unshelve_of_0_1_0_in_another_cell_is_continued(
    cloud: AuditedCloud, at_point: Callable[..., None], step: str, when: str
) -> None:
    server = cloud.boot(flavor="any.small")
    home = str(cloud.show(server).compute_host).partition("-")[0]
    wanted = "cell2-host1" if home == "cell1" else "cell1-host1"
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")

    def die() -> None:
        recipe = "unshelve_across_cells"
        former = dict(zip((each.name for each in KNOWLEDGE.recipes[recipe].steps), WITHOUT_GUEST[recipe], strict=True))
        database = cloud.parts.api_database
        operation = next(each for each in journal.of_server(database, server.id) if each.recipe == recipe)
        steps = msgspec.to_builtins(operation.steps)
        for each in steps:
            each["step"] = former[each["step"]]
        with database.write() as connection:
            of_operation = journal.OPERATIONS.c.id == operation.id
            connection.execute(journal.OPERATIONS.update().where(of_operation).values(recipe_version=1, steps=steps))
        raise ProcessDiedError

    at_point(f"unshelve_across_cells.{step}.do.{when}", die)
    body = {"unshelve": {"host": wanted}}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.91")
    assert answer.status_code == 202, answer.text
    assert cloud.wait(server, "ACTIVE").compute_host == wanted
    assert cloud.audit().is_clean
