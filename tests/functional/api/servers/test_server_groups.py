"""Server groups."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway.store.api import groups


def make(api: Any, name: str = "g", policy: str = "anti-affinity", **more: Any) -> dict[str, Any]:
    created = api.post("/os-server-groups", {"server_group": {"name": name, "policy": policy} | more})
    assert created.status == 200
    return dict(created.json["server_group"])


def test_a_group_is_made_shown_and_deleted(api: Any) -> None:
    group = make(api, rules={"max_server_per_host": "3"})
    assert group == {
        "id": group["id"],
        "name": "g",
        "policy": "anti-affinity",
        "rules": {"max_server_per_host": 3},
        "members": [],
        "project_id": "project",
        "user_id": "user",
    }
    assert api.get(f"/os-server-groups/{group['id']}").json == {"server_group": group}
    assert api.delete(f"/os-server-groups/{group['id']}").status == 204
    missing = api.get(f"/os-server-groups/{group['id']}")
    assert (missing.status, missing.message) == (404, f"Instance group {group['id']} could not be found.")


def test_older_versions_have_a_list_of_policies(api: Any) -> None:
    old = {"server_group": {"name": "g", "policies": ["affinity"]}}
    created = api.post("/os-server-groups", old, version="2.1").json["server_group"]
    assert created == {"id": created["id"], "name": "g", "policies": ["affinity"], "members": [], "metadata": {}}
    assert "project_id" in api.get(f"/os-server-groups/{created['id']}", version="2.13").json["server_group"]
    soft = {"server_group": {"name": "g", "policies": ["soft-affinity"]}}
    assert api.post("/os-server-groups", soft, version="2.14").status == 400
    assert api.post("/os-server-groups", soft, version="2.15").status == 200
    assert api.post("/os-server-groups", old, version="2.64").status == 400


@pytest.mark.parametrize(
    "group",
    [
        {"name": "g"},
        {"name": "g", "policy": "love"},
        {"name": "", "policy": "affinity"},
        {"name": "g", "policy": "affinity", "rules": {"max_server_per_host": 3}},
        {"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 0}},
        {"name": "g", "policy": "anti-affinity", "rules": {"other": 1}},
    ],
)
def test_bad_groups_are_refused(api: Any, group: dict[str, Any]) -> None:
    assert api.post("/os-server-groups", {"server_group": group}).status == 400


@pytest.mark.parametrize(
    ("version", "policies"),
    [
        ("2.1", {}),
        ("2.1", {"policies": []}),
        ("2.1", {"policies": [""]}),
        ("2.1", {"policies": ["affinity", "anti-affinity"]}),
        ("2.1", {"policies": ["soft-affinity"]}),
        ("2.63", {"policies": []}),
        ("2.63", {"policy": "affinity"}),
        ("2.64", {"policies": ["affinity"]}),
        ("2.64", {"policy": ""}),
        ("2.64", {"policy": ["affinity"]}),
    ],
)
def test_wrong_policies_are_refused_in_every_version(api: Any, version: str, policies: dict[str, Any]) -> None:
    """1894966 on Launchpad."""
    answer = api.post("/os-server-groups", {"server_group": {"name": "g"} | policies}, version=version)
    assert answer.status == 400
    assert api.get("/os-server-groups").json == {"server_groups": []}


def test_members_are_the_servers_that_exist(api: Any, cloud: Any) -> None:
    group = make(api)
    server = cloud.server()
    with cloud.services.api.write() as connection:
        row = groups.get(cloud.services.api, group["id"])
        groups.add_members_in(connection, row, [server.uuid], lambda _used: None)
        groups.add_members_in(connection, row, [str(uuid.uuid4())], lambda _used: None)
    assert api.get(f"/os-server-groups/{group['id']}").json["server_group"]["members"] == [server.uuid]


def test_groups_belong_to_projects(api: Any, admin: Any) -> None:
    group = make(api)
    stranger = api.by("user:elsewhere")
    assert stranger.get("/os-server-groups").json == {"server_groups": []}
    assert stranger.get(f"/os-server-groups/{group['id']}").status == 403
    assert stranger.delete(f"/os-server-groups/{group['id']}").status == 403
    assert stranger.get("/os-server-groups?all_projects=1").json == {"server_groups": []}
    assert len(admin.get("/os-server-groups?all_projects=1").json["server_groups"]) == 1


def test_lists_are_cut(api: Any) -> None:
    names = ["a", "b", "c"]
    for name in names:
        make(api, name)
    listed = api.get("/os-server-groups?offset=1&limit=1").json["server_groups"]
    assert [group["name"] for group in listed] == ["b"]
    assert api.get("/os-server-groups?limit=-1").status == 400
    assert api.get("/os-server-groups?colour=red").status == 400
    assert api.get("/os-server-groups?colour=red", version="2.74").status == 200


def test_server_groups_are_limited_by_quota(api: Any, cloud: Any) -> None:
    cloud.option("quota", "server_groups", 1)
    make(api)
    refused = api.post("/os-server-groups", {"server_group": {"name": "g", "policy": "affinity"}})
    assert (refused.status, refused.message) == (403, "Quota exceeded, too many server groups.")
