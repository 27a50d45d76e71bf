"""Every recipe. Read one from top to bottom, and you know what happens.

``resize`` is what every resize and cold migration begins as: when the destination is chosen, it becomes ``cross_cell_resize``
or ``same_cell_resize``, which begin with the same step.

Whoever changes the steps of a recipe counts up its ``version`` and says which older ones it ``continues`` (docs/architecture.md,
"How a recipe may change").
"""

from __future__ import annotations

from causeway.moves import give_back
from causeway.moves.recipe import Recipe
from causeway.moves.steps.check import CheckSource, CheckTarget
from causeway.moves.steps.confirm import ConfirmResizeAtSource, DeleteSourceRecords, FinishConfirm
from causeway.moves.steps.finish import FinishResizeAtDest
from causeway.moves.steps.prepare import PrepResizeAtDest, PrepResizeAtSource
from causeway.moves.steps.records import MoveRecord, ShowTarget, SwitchInstanceMapping, TargetDBSetup
from causeway.moves.steps.revert import (
    BeginRevert,
    DeleteTargetRecords,
    FinishRevert,
    FinishRevertResizeAtSource,
    ReturnAllocations,
    ReturnRecord,
    ReturnRecords,
    RevertResizeAtDest,
    SwitchInstanceMappingBack,
)
from causeway.moves.steps.same_cell import (
    ConfirmResize,
    FinishResize,
    FinishRevertResize,
    PrepResize,
    ResizeInstance,
    RevertResize,
)
from causeway.moves.steps.select import SelectDestination

RESIZE = Recipe(
    "resize",
    (SelectDestination(),),
    pivot="",
    given_back=give_back.after_resize,
    tried_again=True,
)

CROSS_CELL_RESIZE = Recipe(
    "cross_cell_resize",
    (
        SelectDestination(),
        TargetDBSetup(),
        PrepResizeAtDest(),
        PrepResizeAtSource(),
        FinishResizeAtDest(),
        SwitchInstanceMapping(),
        ShowTarget(),
    ),
    pivot="SwitchInstanceMapping",
    given_back=give_back.after_resize,
    tried_again=True,
)

CROSS_CELL_CONFIRM = Recipe(
    "cross_cell_confirm",
    (
        CheckTarget(),
        ConfirmResizeAtSource(),
        DeleteSourceRecords(),
        FinishConfirm(),
    ),
    pivot="ConfirmResizeAtSource",
    given_back=give_back.after_revert,
    # 2: the check comes first.
    version=2,
    continues=frozenset({1}),
)

CROSS_CELL_REVERT = Recipe(
    "cross_cell_revert",
    (
        CheckSource(),
        ReturnRecords(),
        SwitchInstanceMappingBack(),
        RevertResizeAtDest(),
        DeleteTargetRecords(),
        FinishRevertResizeAtSource(),
        ReturnAllocations(),
        FinishRevert(),
    ),
    pivot="SwitchInstanceMappingBack",
    given_back=give_back.after_revert,
    # 2: the check comes first.
    version=2,
    continues=frozenset({1}),
)

SAME_CELL_RESIZE = Recipe(
    "same_cell_resize",
    (
        SelectDestination(),
        PrepResize(),
        ResizeInstance(),
        FinishResize(),
        MoveRecord(),
    ),
    pivot="MoveRecord",
    given_back=give_back.after_resize,
    tried_again=True,
)

SAME_CELL_CONFIRM = Recipe(
    "same_cell_confirm",
    (
        CheckTarget(),
        ConfirmResize(),
        FinishConfirm(),
    ),
    pivot="ConfirmResize",
    given_back=give_back.after_revert,
    # 2: the check comes first.
    version=2,
    continues=frozenset({1}),
)

SAME_CELL_REVERT = Recipe(
    "same_cell_revert",
    (
        CheckSource(),
        BeginRevert(),
        RevertResize(),
        ReturnRecord(),
        FinishRevertResize(),
        ReturnAllocations(),
        FinishRevert(),
    ),
    pivot="BeginRevert",
    given_back=give_back.after_revert,
    # 2: the check comes first.
    version=2,
    continues=frozenset({1}),
)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        RESIZE,
        CROSS_CELL_RESIZE,
        CROSS_CELL_CONFIRM,
        CROSS_CELL_REVERT,
        SAME_CELL_RESIZE,
        SAME_CELL_CONFIRM,
        SAME_CELL_REVERT,
    )
}
