"""Servers that Nova stopped, suspended, shelved, rescued, locked or deleted softly, after their hosts were taken over."""

from __future__ import annotations

import pytest

from tests.integration.adopt import outside
from tests.integration.adopt.operations.taken import TakenCloud

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    ("name", "action", "as_admin"),
    [
        ("switched off", "os-start", False),
        ("suspended", "resume", False),
        ("shelved", "unshelve", False),
        ("rescued", "unrescue", False),
        ("softdel", "restore", True),
    ],
)
def test_a_server_that_nova_left_in_a_state_is_active_again(
    taken: TakenCloud, name: str, action: str, as_admin: bool
) -> None:
    """Its guest counted when it was Nova's: its disk has a line of then."""
    uuid = taken.server(name)
    ports = set(taken.adopted.ports(uuid))
    taken.act(uuid, action, status="ACTIVE", admin=as_admin)
    if name == "suspended":
        outside.await_tick(taken.cloud, uuid, 1)
        outside.check_ticks(taken.cloud, uuid)
    else:
        taken.await_boot(uuid, outside.Tick(1, 1))
    assert set(taken.adopted.ports(uuid)) == ports


def test_a_server_that_nova_locked_is_locked_until_it_is_unlocked(taken: TakenCloud) -> None:
    uuid = taken.server("locked")
    path, stop = f"/servers/{uuid}/action", {"pause": None}
    assert taken.call("GET", f"/servers/{uuid}")["server"]["locked_reason"] == "by the operators"
    assert taken.ask("POST", path, stop).status_code == 409
    taken.act(uuid, "unlock")
    taken.act(uuid, "pause", status="PAUSED")
    taken.act(uuid, "unpause", status="ACTIVE")
