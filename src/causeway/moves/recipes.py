"""The recipes of all moves. The steps of a recipe run from top to bottom; each step's docstring says what it does.

Every resize and cold migration begins with the recipe ``resize``. Its only step chooses the target; then the move continues
with ``cross_cell_resize`` or ``same_cell_resize``, whose first step is the same. In the same way, every live migration to another
cell begins with ``near_live_migration``, and continues with ``cross_cell_live_migration`` if its hosts reach one another.

If you change the steps of a recipe, raise its ``version`` by 1, and add to ``continues`` the older versions that it can continue
(docs/architecture/journal.md, "How a recipe may change").
"""

from __future__ import annotations

from dataclasses import replace

from causeway.model import operations
from causeway.moves import roll_back, second_try
from causeway.moves.memory import MEMORY_VERSION, OLDEST_MEMORY_VERSION, MoveMemory
from causeway.moves.recipe import BEGINS_AS, BEGINS_AS_VERSION, CROSS_CELL_VERSION, NEAR_LIVE_VERSION, Recipe
from causeway.moves.run import Run
from causeway.moves.steps.check import CheckSource, CheckTarget
from causeway.moves.steps.confirm import ConfirmResizeAtSource, DeleteSourceRecords, FinishConfirm
from causeway.moves.steps.finish import FinishResizeAtDest
from causeway.moves.steps.hand_over import PrepResizeAtSource
from causeway.moves.steps.live_across_cells import (
    ArriveAtTarget,
    EndLiveMigration,
    LeaveSourceCellLive,
    MigrateGuest,
    PrepareOtherHostLive,
    PrepareTarget,
    SwitchBehindPivot,
    near_live_instead,
)
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
from causeway.moves.steps.prepare import PrepResizeAtDest
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
from causeway.moves.steps.warm import CopyInsideCell, CopyWhileRunning
from causeway.moves.undo_late import undo_late
from causeway.parts.live_queue import AwaitTurn

RESIZE = Recipe(
    BEGINS_AS,
    (SelectDestination(),),
    pivot="",
    rolled_back=roll_back.after_resize,
    try_again=second_try.prepare,
    undo_late=undo_late,
    version=BEGINS_AS_VERSION,
)

CROSS_CELL_RESIZE = Recipe(
    "cross_cell_resize",
    (
        SelectDestination(),
        TargetDBSetup(),
        PrepResizeAtDest(),
        CopyWhileRunning(),
        PrepResizeAtSource(),
        FinishResizeAtDest(),
        SwitchInstanceMapping(),
        ShowTarget(),
    ),
    pivot="SwitchInstanceMapping",
    rolled_back=roll_back.after_resize,
    try_again=second_try.prepare,
    undo_late=undo_late,
    version=CROSS_CELL_VERSION,
    continues=frozenset({1, 2}),
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
    rolled_back=roll_back.after_revert,
    undo_late=undo_late,
    after=CROSS_CELL_RESIZE,
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
    rolled_back=roll_back.after_revert,
    undo_late=undo_late,
    after=CROSS_CELL_RESIZE,
    # 2: the check comes first.
    version=2,
    continues=frozenset({1}),
)

SAME_CELL_RESIZE = Recipe(
    "same_cell_resize",
    (
        SelectDestination(),
        PrepResize(),
        CopyInsideCell(),
        ResizeInstance(),
        FinishResize(),
        MoveRecord(),
    ),
    pivot="MoveRecord",
    rolled_back=roll_back.after_resize,
    try_again=second_try.prepare,
    undo_late=undo_late,
    # 2: disks are copied while the guest runs.
    version=2,
    continues=frozenset({1}),
)

SAME_CELL_CONFIRM = Recipe(
    "same_cell_confirm",
    (
        CheckTarget(),
        ConfirmResize(),
        FinishConfirm(),
    ),
    pivot="ConfirmResize",
    rolled_back=roll_back.after_revert,
    undo_late=undo_late,
    after=SAME_CELL_RESIZE,
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
    rolled_back=roll_back.after_revert,
    undo_late=undo_late,
    after=SAME_CELL_RESIZE,
    # 2: the check comes first.
    version=2,
    continues=frozenset({1}),
)

NEAR_LIVE_MIGRATE = Recipe(
    operations.NEAR_LIVE_MIGRATION,
    (
        SelectOtherCell(),
        TargetDBSetup(),
        PrepareOtherHost(),
        CopyWhileRunning(),
        SaveGuest(),
        WakeGuest(),
        SwitchInstanceMapping(),
        ShowAtTarget(),
        LetGuestGoOn(),
        LeaveSourceCell(),
        DeleteSourceRecords(),
        EndNearLiveMigration(),
    ),
    pivot="SwitchInstanceMapping",
    rolled_back=roll_back.after_near_live,
    undo_late=undo_late,
    version=NEAR_LIVE_VERSION,
    continues=frozenset({1}),
)

LIVE_MIGRATE_ACROSS_CELLS = Recipe(
    operations.LIVE_ACROSS_CELLS,
    (
        SelectOtherCell(),
        AwaitTurn[Run](),
        TargetDBSetup(),
        PrepareOtherHostLive(),
        PrepareTarget(),
        MigrateGuest(),
        SwitchBehindPivot(),
        ShowAtTarget(),
        ArriveAtTarget(),
        LeaveSourceCellLive(),
        DeleteSourceRecords(),
        EndLiveMigration(),
    ),
    pivot="MigrateGuest",
    rolled_back=roll_back.after_live,
    try_again=near_live_instead,
    undo_late=undo_late,
)

RECIPES: dict[str, Recipe] = {
    recipe.name: replace(
        recipe, memory=MoveMemory, memory_version=MEMORY_VERSION, oldest_memory_version=OLDEST_MEMORY_VERSION
    )
    for recipe in (
        RESIZE,
        CROSS_CELL_RESIZE,
        CROSS_CELL_CONFIRM,
        CROSS_CELL_REVERT,
        SAME_CELL_RESIZE,
        SAME_CELL_CONFIRM,
        SAME_CELL_REVERT,
        NEAR_LIVE_MIGRATE,
        LIVE_MIGRATE_ACROSS_CELLS,
    )
}
