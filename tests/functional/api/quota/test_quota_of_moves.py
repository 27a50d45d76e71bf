"""A server is counted once, however many copies of it there are and whatever their flags say; upsizes are checked before."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.flavor import Flavor
from causeway.model.states import TaskState, VmState
from causeway.store.api import flavors
from causeway.store.cell import instances

SMALL = Flavor("1", "small", vcpus=1, memory_mb=512, root_gb=1)
LARGE = Flavor("2", "large", vcpus=4, memory_mb=2048, root_gb=1)


def copies(cloud: Any, *, source_hidden: bool, target_hidden: bool, lives_in: str) -> None:
    """A server that goes from cell1 to cell2, with its copy there; and another one that stands still."""
    cloud.server("cell1", flavor=SMALL)
    server = cloud.server(lives_in, flavor=SMALL)
    for cell, flavor, hidden, states in (
        ("cell1", SMALL, source_hidden, {"task_state": TaskState.RESIZE_MIGRATED}),
        ("cell2", LARGE, target_hidden, {"vm_state": VmState.RESIZED}),
    ):
        with cloud.cell(cell).write() as connection:
            connection.execute(instances.TABLE.delete().where(instances.TABLE.c.uuid == server.uuid))
        server.flavor, server.hidden, server.task_state, server.vm_state = flavor, hidden, None, VmState.ACTIVE
        for name, value in states.items():
            setattr(server, name, value)
        with cloud.cell(cell).write() as connection:
            instances.insert(connection, server)


def in_use(api: Any) -> tuple[int, int, int]:
    found = api.get("/os-quota-sets/project/detail").json["quota_set"]
    return found["instances"]["in_use"], found["cores"]["in_use"], found["ram"]["in_use"]


@pytest.mark.parametrize(
    ("source_hidden", "target_hidden", "lives_in", "counted"),
    [
        (False, True, "cell1", (2, 2, 1024)),
        # Switched, and the flags lag; then in the middle of changing them; then settled.
        (False, True, "cell2", (2, 5, 2560)),
        (False, False, "cell2", (2, 5, 2560)),
        (True, False, "cell2", (2, 5, 2560)),
        (True, True, "cell2", (2, 5, 2560)),
        (True, True, "cell1", (2, 2, 1024)),
    ],
)
def test_a_server_is_counted_once(
    api: Any, cloud: Any, source_hidden: bool, target_hidden: bool, lives_in: str, counted: tuple[int, int, int]
) -> None:
    copies(cloud, source_hidden=source_hidden, target_hidden=target_hidden, lives_in=lives_in)
    assert in_use(api) == counted


@pytest.mark.parametrize(("resource", "limit", "used"), [("cores", 4, 2), ("ram", 2559, 1024)])
def test_an_upsize_beyond_the_quota_is_refused_with_novas_message(
    api: Any, cloud: Any, resource: str, limit: int, used: int
) -> None:
    cloud.option("quota", resource, limit)
    flavors.create(cloud.services.api, LARGE)
    cloud.host("host", "cell1")
    cloud.server("cell1", flavor=SMALL)
    server = cloud.server("cell1", flavor=SMALL, host="host", node="host")
    answer = api.post(f"/servers/{server.uuid}/action", {"resize": {"flavorRef": "2"}})
    asked = {"cores": 3, "ram": 1536}[resource]
    assert (answer.status, answer.message) == (
        403,
        f"Quota exceeded for {resource}: Requested {asked}, but already used {used} of {limit} {resource}",
    )
    assert instances.get(cloud.cell("cell1"), server.uuid).task_state is None
    assert cloud.services.conductor.calls == []


def test_a_downsize_is_not_checked(api: Any, cloud: Any) -> None:
    cloud.option("quota", "cores", 0)
    flavors.create(cloud.services.api, SMALL)
    cloud.host("host", "cell1")
    server = cloud.server("cell1", flavor=LARGE, host="host", node="host")
    assert api.post(f"/servers/{server.uuid}/action", {"resize": {"flavorRef": "1"}}).status == 202
