"""A resize whose last step can't be done yet: its user sees VERIFY_RESIZE already, and continues."""

from __future__ import annotations

import pytest

from causeway.model.sagas import SagaState
from causeway.moves.recipes import WITH_GUEST
from causeway.store.api import journal
from tests.faults.clouds.site import LocalSite, until
from tests.faults.moves import look
from tests.faults.moves.flows import Flow
from tests.faults.moves.users import ask, boot, mark

POINTS = {"cross": "resize.ShowTarget.do.before", "same": "resize.MoveRecord.do.after"}


@pytest.mark.parametrize("reach", ["cross", "same"])
@pytest.mark.parametrize("operation", ["confirm", "revert", "delete"])
def test_what_the_user_asks_for_next_waits_for_the_resize_to_end(
    local_site: LocalSite, reach: str, operation: str
) -> None:
    flow = Flow("resize", reach, "image")
    (uuid,) = boot(local_site, flow, 1)
    local_site.arm({POINTS[reach]: "error"})
    ask(local_site, flow, "resize", uuid)
    assert until(lambda: _states(local_site, uuid), lambda states: states == [SagaState.STUCK]) == [SagaState.STUCK]
    assert local_site.admin.compute.get_server(uuid).status == "VERIFY_RESIZE"
    if operation == "delete":
        local_site.admin.compute.delete_server(uuid)
    else:
        assert ask(local_site, flow, operation, uuid).is_accepted
    local_site.disarm()
    if operation == "delete":
        assert until(lambda: look.record(local_site, uuid), lambda record: record is None) is None
        assert look.remains(local_site, uuid) == []
        return
    assert until(lambda: look.is_settled(local_site, uuid), bool)
    assert _states(local_site, uuid) == [SagaState.DONE, SagaState.DONE]
    assert look.complaints(local_site, uuid, mark(uuid)) == []
    assert local_site.admin.compute.get_server(uuid).status == "ACTIVE"
    local_site.admin.compute.delete_server(uuid)


def _states(site: LocalSite, uuid: str) -> list[SagaState]:
    """Of the server's moves, oldest first."""
    return [each.state for each in journal.of_server(site.api, uuid) if each.recipe in WITH_GUEST]
