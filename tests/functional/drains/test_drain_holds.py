"""A cloud whose policy lets administrators alone say that a server waits (``causeway:hold``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .drains_cloud import WAYS_TO_HOLD, DrainsCloud, ask_to_wait

RULE = "causeway:servers:hold"
CLOUD = {"policy_file": str(Path(__file__).with_name("policy_of_holds.yaml"))}
ONE = "cell1-host1"


@pytest.mark.parametrize("way", WAYS_TO_HOLD)
def test_who_may_not_ask_to_wait_gets_the_error(cloud: DrainsCloud, way: str) -> None:
    server = cloud.on(ONE)
    refused = ask_to_wait(cloud, server, way)
    assert refused.status_code == 403 and RULE in refused.text
    assert "causeway:hold" not in cloud.show(server).metadata
    # All else is theirs to change.
    assert (
        cloud.member.compute.post(f"/servers/{server.id}/metadata", json={"metadata": {"mine": "yes"}}).status_code
        == 200
    )


def test_a_hold_of_an_administrator_is_theirs_to_lift(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.admin.compute.set_server_metadata(server.id, **{"causeway:hold": "2999-01-01"})
    path = f"/servers/{server.id}/metadata"
    assert cloud.member.compute.delete(f"{path}/causeway:hold").status_code == 403
    assert cloud.member.compute.put(path, json={"metadata": {}}).status_code == 403
    kept = {"causeway:hold": "2999-01-01", "mine": "yes"}
    assert cloud.member.compute.put(path, json={"metadata": kept}).status_code == 200
    cloud.admin.compute.delete_server_metadata(server.id, ["causeway:hold"])


def test_who_may_not_ask_to_wait_may_not_do_so_with_a_new_server(cloud: DrainsCloud) -> None:
    wanted = {
        "name": "held",
        "flavorRef": "any.small",
        "imageRef": cloud.image_id,
        "networks": [{"uuid": cloud.network_id}],
        "metadata": {"causeway:hold": "2999-01-01"},
    }
    answer = cloud.member.compute.post("/servers", json={"server": wanted}, microversion="2.96")
    assert answer.status_code == 403 and RULE in answer.text
