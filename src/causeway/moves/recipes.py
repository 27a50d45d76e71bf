"""The recipes of all moves. The steps of a recipe run from top to bottom; each step's docstring says what it does.

Moves inside a cell and between cells have the same recipes; the tables say which steps only one of them has. Every live
migration to another cell begins with ``near_live_migration``, and continues with ``live_migration`` if its hosts reach one
another. Servers without a guest have recipes of their own, in `causeway.moves.without_guest`.

If you change the steps of a recipe, raise its ``version`` by 1, and add to ``continues`` the older versions that it can continue
(docs/architecture/journal.md, "How a recipe may change").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from causeway.model import operations
from causeway.moves import roll_back, second_try
from causeway.moves.memory import MEMORY_VERSION, OLDEST_MEMORY_VERSION, MoveMemory
from causeway.moves.recipe import (
    ACROSS_CELLS,
    CONFIRM_VERSION,
    INSIDE_CELL,
    LIVE_VERSION,
    NEAR_LIVE_VERSION,
    RESIZE_VERSION,
    REVERT_VERSION,
    WITH_PORT_DEVICES,
    Recipe,
)
from causeway.moves.steps.check import CheckSource, CheckTarget
from causeway.moves.steps.confirm import FinishConfirm, ReleaseSource
from causeway.moves.steps.finish import FinishAtTarget
from causeway.moves.steps.hand_over import HandOver
from causeway.moves.steps.live_arrival import ArriveAtTarget, EndLiveMigration, ReleaseSourceLive, SwitchBehindPivot
from causeway.moves.steps.live_prepare import AwaitTurn, PrepareTarget
from causeway.moves.steps.live_target import ChooseTarget, ReserveOtherHost
from causeway.moves.steps.live_transfer import MigrateGuest
from causeway.moves.steps.near_live import (
    EndNearLiveMigration,
    LeaveSourceCell,
    LetGuestGoOn,
    PrepareOtherHost,
    SaveGuest,
    SelectOtherCell,
    ShowAtTarget,
    WakeGuest,
)
from causeway.moves.steps.port_devices import AttachPorts, DetachPorts
from causeway.moves.steps.prepare import ReserveTarget
from causeway.moves.steps.records import (
    DeleteSourceRecords,
    MoveRecord,
    ShowTarget,
    SwitchInstanceMapping,
    TargetDBSetup,
)
from causeway.moves.steps.revert import (
    BeginRevert,
    DeleteTargetRecords,
    DestroyAtTarget,
    FinishRevert,
    RestoreAtSource,
    ReturnAllocations,
    ReturnRecord,
    ReturnRecords,
    SwitchInstanceMappingBack,
)
from causeway.moves.steps.select import SelectDestination
from causeway.moves.steps.warm import CopyWhileRunning
from causeway.moves.undo_late import undo_late
from causeway.moves.without_guest.evacuate import EVACUATE
from causeway.moves.without_guest.move_records import MOVE_RECORDS
from causeway.moves.without_guest.unshelve import UNSHELVE
from causeway.moves.without_guest.unshelve_across_cells import UNSHELVE_ACROSS_CELLS
from causeway.sagas import recipe as sagas
from causeway.sagas.recipe import Former

RESIZE = Recipe(
    operations.RESIZE,
    (
        SelectDestination(),
        *ACROSS_CELLS.only(TargetDBSetup()),
        ReserveTarget().joining("TargetDBSetup"),
        CopyWhileRunning(),
        HandOver(),
        FinishAtTarget(),
        *INSIDE_CELL.only(MoveRecord().joining("FinishAtTarget")),
        *ACROSS_CELLS.only(SwitchInstanceMapping().joining("FinishAtTarget"), ShowTarget()),
    ),
    pivot="SwitchInstanceMapping",
    other_pivot="MoveRecord",
    rolled_back=roll_back.after_resize,
    try_again=second_try.whole_move,
    undo_late=undo_late,
    version=RESIZE_VERSION,
    continues=frozenset({1, 2}),
    formers=(
        Former(
            "cross_cell_resize",
            3,
            {
                "PrepResizeAtDest": "ReserveTarget",
                "PrepResizeAtSource": "HandOver",
                "FinishResizeAtDest": "FinishAtTarget",
            },
        ),
        Former(
            "same_cell_resize",
            2,
            {"PrepResize": "ReserveTarget", "ResizeInstance": "HandOver", "FinishResize": "FinishAtTarget"},
        ),
    ),
)

CONFIRM = Recipe(
    operations.CONFIRM_RESIZE,
    (
        CheckTarget(),
        ReleaseSource(),
        *ACROSS_CELLS.only(DeleteSourceRecords().joining("ReleaseSource")),
        FinishConfirm(),
    ),
    pivot="ReleaseSource",
    rolled_back=roll_back.after_revert,
    undo_late=undo_late,
    after=RESIZE,
    version=CONFIRM_VERSION,
    continues=frozenset({1}),
    formers=(
        Former("cross_cell_confirm", 2, {"ConfirmResizeAtSource": "ReleaseSource"}),
        Former("same_cell_confirm", 2, {"ConfirmResize": "ReleaseSource"}),
    ),
)

REVERT = Recipe(
    operations.REVERT_RESIZE,
    (
        CheckSource(),
        *INSIDE_CELL.only(BeginRevert()),
        *ACROSS_CELLS.only(ReturnRecords().joining("CheckSource"), SwitchInstanceMappingBack()),
        DestroyAtTarget(),
        *INSIDE_CELL.only(ReturnRecord()),
        *ACROSS_CELLS.only(DeleteTargetRecords().joining("DestroyAtTarget")),
        RestoreAtSource(),
        ReturnAllocations().joining("RestoreAtSource"),
        FinishRevert(),
    ),
    pivot="SwitchInstanceMappingBack",
    other_pivot="BeginRevert",
    rolled_back=roll_back.after_revert,
    undo_late=undo_late,
    after=RESIZE,
    version=REVERT_VERSION,
    continues=frozenset({1}),
    formers=(
        Former(
            "cross_cell_revert",
            2,
            {"RevertResizeAtDest": "DestroyAtTarget", "FinishRevertResizeAtSource": "RestoreAtSource"},
        ),
        Former("same_cell_revert", 2, {"RevertResize": "DestroyAtTarget", "FinishRevertResize": "RestoreAtSource"}),
    ),
)

NEAR_LIVE_MIGRATE = Recipe(
    operations.NEAR_LIVE_MIGRATION,
    (
        SelectOtherCell(),
        TargetDBSetup(),
        PrepareOtherHost(),
        CopyWhileRunning(),
        *WITH_PORT_DEVICES.only(DetachPorts()),
        SaveGuest(),
        WakeGuest(),
        SwitchInstanceMapping(),
        ShowAtTarget(),
        LetGuestGoOn(),
        *WITH_PORT_DEVICES.only(AttachPorts()),
        LeaveSourceCell(),
        DeleteSourceRecords(),
        EndNearLiveMigration(),
    ),
    pivot="SwitchInstanceMapping",
    rolled_back=roll_back.after_near_live,
    undo_late=undo_late,
    version=NEAR_LIVE_VERSION,
    continues=frozenset({2}),
)

LIVE_MIGRATE = Recipe(
    operations.LIVE_MIGRATION,
    (
        *INSIDE_CELL.only(ChooseTarget()),
        *ACROSS_CELLS.only(SelectOtherCell()),
        AwaitTurn(),
        *ACROSS_CELLS.only(TargetDBSetup(), ReserveOtherHost()),
        PrepareTarget(),
        *WITH_PORT_DEVICES.only(DetachPorts()),
        MigrateGuest(),
        *ACROSS_CELLS.only(SwitchBehindPivot(), ShowAtTarget()),
        ArriveAtTarget(),
        *WITH_PORT_DEVICES.only(AttachPorts()),
        ReleaseSourceLive(),
        *ACROSS_CELLS.only(DeleteSourceRecords()),
        EndLiveMigration(),
    ),
    pivot="MigrateGuest",
    rolled_back=roll_back.after_live,
    try_again=second_try.after_live,
    undo_late=undo_late,
    version=LIVE_VERSION,
    continues=frozenset({1, 2}),
    formers=(Former("cross_cell_live_migration", 1, {"LeaveSourceCell": "ReleaseSource"}),),
)

#: Moves of servers with their guests: recipe's name -> recipe
WITH_GUEST: dict[str, Recipe] = {
    recipe.name: replace(
        recipe, memory=MoveMemory, memory_version=MEMORY_VERSION, oldest_memory_version=OLDEST_MEMORY_VERSION
    )
    for recipe in (
        RESIZE,
        CONFIRM,
        REVERT,
        NEAR_LIVE_MIGRATE,
        LIVE_MIGRATE,
    )
}

#: Moves of servers whose guest is not there: of a dead host, shelved, or never made
WITHOUT_GUEST: dict[str, sagas.Recipe[Any]] = {
    recipe.name: recipe for recipe in (EVACUATE, UNSHELVE, UNSHELVE_ACROSS_CELLS, MOVE_RECORDS)
}

RECIPES: dict[str, sagas.Recipe[Any]] = {**WITH_GUEST, **WITHOUT_GUEST}
