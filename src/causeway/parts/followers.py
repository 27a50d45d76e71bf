"""An operation that takes the place of another one which was undone: for the same migration, on behalf of the same user.

It is one of its own: computes refuse what was undone for the former one. The server keeps its task meanwhile.
"""

from __future__ import annotations

import uuid as uuids
from typing import Any

import msgspec

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState


def follower_of(
    former: Operation, recipe: str, version: int, memory: Any, memory_version: int, cause: errors.CausewayError
) -> Operation:
    """``version``: of the recipe. ``cause``: why the former one was undone."""
    return Operation(
        id=str(uuids.uuid4()),
        migration_uuid=former.migration_uuid,
        instance_uuid=former.instance_uuid,
        recipe=recipe,
        # Not "requested": that is for what a user asked for just now.
        state=SagaState.RUNNING,
        data=msgspec.to_builtins(memory),
        request_id=former.request_id,
        user_id=former.user_id,
        project_id=former.project_id,
        reason=former.reason,
        error=cause.to_wire(),
        recipe_version=version,
        memory_version=memory_version,
    )
