"""An operation that is cancelled before its first step: what its request made is gone, too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.answers import call
from tests.faults.clouds.site import LocalSite, until
from tests.faults.moves import look
from tests.faults.moves.flows import Flow
from tests.faults.moves.users import boot
from tests.faults.storm.judge import Evidence

ASKED = {
    "createImage": {"name": "picture"},
    "createBackup": {"name": "backup", "backup_type": "daily", "rotation": 1},
    "shelve": None,
}


@pytest.mark.parametrize("action", ASKED)
def test_the_image_that_was_to_be_made_is_gone(local_site: LocalSite, action: str) -> None:
    (uuid,) = boot(local_site, Flow("resize", "cross", "image"), 1)
    # Nobody is notified of it, so nobody begins with it before a lease has run out.
    local_site.arm({"rpc.conductor.run_move.request": "error"})
    arguments: Any = ASKED[action]
    assert call(local_site, "POST", f"/servers/{uuid}/action", {action: arguments}).is_accepted
    assert uuid in Evidence(local_site).images
    (operation,) = local_site.admin.compute.get(f"/os-causeway/servers/{uuid}/operations").json()["operations"]
    assert call(local_site, "DELETE", f"/os-causeway/operations/{operation['id']}", by=local_site.admin).is_accepted
    local_site.disarm()
    assert until(lambda: look.is_settled(local_site, uuid), bool)
    assert uuid not in Evidence(local_site).images
    assert look.audit(local_site) == {}
    local_site.admin.compute.delete_server(uuid)
