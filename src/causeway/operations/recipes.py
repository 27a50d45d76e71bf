"""Every operation with its recipe, moves included."""

from __future__ import annotations

from typing import Any

from causeway.moves import recipes as moves
from causeway.operations.attachment_refresh import REFRESH_ATTACHMENT
from causeway.operations.build import BUILD
from causeway.operations.delete import DELETE
from causeway.operations.images import CREATE_BACKUP, CREATE_IMAGE
from causeway.operations.interfaces import ATTACH_INTERFACE, DETACH_INTERFACE
from causeway.operations.rebuild import REBUILD
from causeway.operations.rebuild_volume import REBUILD_VOLUME
from causeway.operations.rescue import RESCUE, UNRESCUE
from causeway.operations.shelve import SHELVE, SHELVE_OFFLOAD
from causeway.operations.soft_delete import RESTORE, SOFT_DELETE
from causeway.operations.volume_images import CREATE_VOLUME_IMAGE
from causeway.operations.volume_snapshots import MERGE_VOLUME_FILES, SNAPSHOT_VOLUME
from causeway.operations.volume_swap import SWAP_VOLUME
from causeway.operations.volumes import ATTACH_VOLUME, DETACH_VOLUME
from causeway.sagas.recipe import Recipe

OPERATIONS: dict[str, Recipe[Any]] = {
    recipe.name: recipe
    for recipe in (
        BUILD,
        DELETE,
        CREATE_IMAGE,
        CREATE_BACKUP,
        CREATE_VOLUME_IMAGE,
        REBUILD,
        REBUILD_VOLUME,
        SHELVE,
        SHELVE_OFFLOAD,
        SOFT_DELETE,
        RESTORE,
        RESCUE,
        UNRESCUE,
        ATTACH_VOLUME,
        DETACH_VOLUME,
        ATTACH_INTERFACE,
        DETACH_INTERFACE,
        SWAP_VOLUME,
        SNAPSHOT_VOLUME,
        MERGE_VOLUME_FILES,
        REFRESH_ATTACHMENT,
    )
}

RECIPES: dict[str, Recipe[Any]] = {**moves.RECIPES, **OPERATIONS}
