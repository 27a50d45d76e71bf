"""An operation has at most one follower: a second one would work on what the first one made."""

from __future__ import annotations

import uuid as uuids

from causeway.model.operations import Operation
from causeway.running.followers import follower_of


def _operation() -> Operation:
    new = str(uuids.uuid4())
    return Operation(id=new, migration_uuid=new, instance_uuid=str(uuids.uuid4()), recipe="unshelve_across_cells")


def test_all_followers_of_one_operation_have_one_id() -> None:
    former = _operation()
    first, again = (follower_of(former, recipe, 1, {}, 1) for recipe in ("unshelve", "near_live_migration"))
    assert first.id == again.id != former.id


def test_followers_of_different_operations_have_different_ids() -> None:
    former = _operation()
    first, other = (follower_of(each, "unshelve", 1, {}, 1) for each in (former, _operation()))
    second = follower_of(first, "unshelve", 1, {}, 1)
    assert len({first.id, other.id, second.id}) == 3
