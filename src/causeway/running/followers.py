"""An operation that follows another one, for the same migration, if it has one, and on behalf of the same user.

Most replace an operation that was undone. They are new operations because computes refuse orders of an operation that was
undone. The server keeps its task meanwhile.
"""

from __future__ import annotations

import uuid as uuids
from typing import Any

import msgspec

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState


def follower_of(
    former: Operation,
    recipe: str,
    version: int,
    memory: Any,
    memory_version: int,
    cause: errors.CausewayError | None = None,
) -> Operation:
    """``version``: of the recipe. ``cause``: why the former operation was undone; None if it succeeded.

    Its id is made from the former operation's, so that the journal can't take two followers of one operation.
    """
    saga_id = str(uuids.uuid5(uuids.UUID(former.id), "follower"))
    return Operation(
        id=saga_id,
        migration_uuid=former.migration_uuid if former.is_for_migration else saga_id,
        instance_uuid=former.instance_uuid,
        recipe=recipe,
        # Not "requested": that state is for new requests of users.
        state=SagaState.RUNNING,
        data=msgspec.to_builtins(memory),
        request_id=former.request_id,
        user_id=former.user_id,
        project_id=former.project_id,
        reason=former.reason,
        error=None if cause is None else cause.to_wire(),
        recipe_version=version,
        memory_version=memory_version,
    )
