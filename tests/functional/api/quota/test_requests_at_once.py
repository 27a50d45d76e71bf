"""Requests at the very same moment, all counted before the first one is accepted: they pass no limit together."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.api.quotas import quota
from causeway.api.servers.creating import create
from causeway.model.flavor import Flavor
from causeway.model.host import ServerGroup
from causeway.model.image import ImageMeta
from causeway.model.network import RequestedNetwork
from causeway.store.api import build_requests, flavors, groups, keypairs, mappings
from tests.functional.api.quota.conftest import AtOnce

IMAGE = "11111111-2222-3333-4444-555555555555"
NETWORK = "22222222-2222-3333-4444-555555555555"
GROUP = "44444444-2222-3333-4444-555555555555"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJIi8vKN5Pq9bcTZ3oUlzv9qTfm9n6YDhV5rYj7T6hcV"


@pytest.fixture(autouse=True)
def surroundings(cloud: Any, images: Any, network: Any) -> None:
    flavors.create(cloud.services.api, Flavor("1", "small", 1, 128, 1))
    images.answers["show"] = lambda _context, image_id: ImageMeta(image_id, size=100)
    network.answers["validate_networks"] = lambda *_args, **_more: [RequestedNetwork(network_id=NETWORK)]
    network.answers["security_group_ids"] = lambda _context, _project, names: list(names)


def body(group: str | None = None, **fields: Any) -> dict[str, Any]:
    server = {"name": "new", "flavorRef": "1", "imageRef": IMAGE, "networks": "none"} | fields
    return {"server": server} | ({"os:scheduler_hints": {"group": group}} if group else {})


def servers(cloud: Any) -> int:
    return mappings.count_living(cloud.services.api, "project")


def limit(admin: Any, **limits: int) -> None:
    assert admin.put("/os-quota-sets/project", {"quota_set": limits}).status == 200


@pytest.mark.parametrize("limits", [{"instances": 2}, {"cores": 2}, {"ram": 300}])
def test_servers_of_a_project(api: Any, admin: Any, cloud: Any, at_once: AtOnce, limits: dict[str, int]) -> None:
    limit(admin, **limits)
    assert at_once(*[lambda: api.post("/servers", body())] * 4) == [202, 202, 403, 403]
    assert servers(cloud) == 2
    assert len(build_requests.list_for(cloud.services.api, "project")) == 2


def test_servers_of_a_user_in_a_project(api: Any, admin: Any, cloud: Any, at_once: AtOnce) -> None:
    """1893284 on Launchpad: each user is limited alone, those of others don't count."""
    assert admin.put("/os-quota-sets/project?user_id=user", {"quota_set": {"instances": 1}}).status == 200
    other = api.by("other:project")
    requests = [lambda: api.post("/servers", body())] * 2 + [lambda: other.post("/servers", body())] * 2
    assert at_once(*requests) == [202, 202, 202, 403]
    assert servers(cloud) == 3


def test_far_from_the_limit_nobody_is_counted_again(api: Any, at_once: AtOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[None] = []
    count = quota.usage

    def counted(*given: Any, **more: Any) -> Any:
        counts.append(None)
        return count(*given, **more)

    monkeypatch.setattr(quota, "usage", counted)
    assert at_once(*[lambda: api.post("/servers", body())] * 4) == [202] * 4
    assert len(counts) == 4


def test_several_servers_of_one_request_are_all_accepted_or_none(
    api: Any, admin: Any, cloud: Any, at_once: AtOnce
) -> None:
    limit(admin, instances=3)
    assert at_once(*[lambda: api.post("/servers", body(min_count=2, max_count=2))] * 2) == [202, 403]
    assert servers(cloud) == 2


def test_a_request_that_is_content_with_fewer_servers_gets_what_others_left(
    api: Any, admin: Any, cloud: Any, at_once: AtOnce
) -> None:
    limit(admin, instances=5)
    assert at_once(*[lambda: api.post("/servers", body(min_count=1, max_count=3))] * 2) == [202, 202]
    assert servers(cloud) == 5


@pytest.mark.parametrize("counts", [[1, 1, 1], [2, 2], [1, 2]])
def test_members_of_a_server_group(api: Any, admin: Any, cloud: Any, at_once: AtOnce, counts: list[int]) -> None:
    """1780373 on Launchpad."""
    limit(admin, server_group_members=2)
    groups.create(cloud.services.api, ServerGroup(GROUP, "g", "project", "user", "soft-affinity"))
    requests = [lambda count=count: api.post("/servers", body(GROUP, min_count=count)) for count in counts]
    assert at_once(*requests)[-1] == 403
    members = groups.get(cloud.services.api, GROUP).members
    assert len(members) in (1, 2) and servers(cloud) == len(members)


def test_a_server_group_that_is_deleted_meanwhile_is_not_found(api: Any, cloud: Any) -> None:
    groups.create(cloud.services.api, ServerGroup(GROUP, "g", "project", "user", "soft-affinity"))
    write = create._write

    def delete_first(*given: Any) -> Any:
        groups.delete(cloud.services.api, GROUP)
        return write(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(create, "_write", delete_first)
        answer = api.post("/servers", body(GROUP))
    assert answer.status == 400 and GROUP in answer.message
    assert servers(cloud) == 0


def test_server_groups_of_a_project(api: Any, admin: Any, cloud: Any, at_once: AtOnce) -> None:
    limit(admin, server_groups=2)
    group = {"server_group": {"name": "g", "policy": "affinity"}}
    assert at_once(*[lambda: api.post("/os-server-groups", group)] * 4) == [200, 200, 403, 403]
    assert len(groups.list_for(cloud.services.api, "project")) == 2


def test_key_pairs_of_a_user(api: Any, admin: Any, cloud: Any, at_once: AtOnce) -> None:
    limit(admin, key_pairs=2)
    requests = [
        lambda name=name: api.post("/os-keypairs", {"keypair": {"name": name, "type": "ssh", "public_key": KEY}})
        for name in "abcd"
    ]
    assert at_once(*requests) == [201, 201, 403, 403]
    assert len(keypairs.list_for(cloud.services.api, "user")) == 2


def test_the_option_says_whether_requests_are_compared_with_one_another(
    api: Any, admin: Any, cloud: Any, at_once: AtOnce
) -> None:
    limit(admin, instances=1)
    cloud.option("quota", "recheck_quota", False)
    assert at_once(*[lambda: api.post("/servers", body())] * 2) == [202, 202]
    assert api.post("/servers", body()).status == 403
