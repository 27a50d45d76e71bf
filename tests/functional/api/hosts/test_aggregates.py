"""Host aggregates and availability zones."""

from __future__ import annotations

from typing import Any

import pytest


def make(admin: Any, name: str = "agg", zone: str | None = None) -> int:
    created = admin.post("/os-aggregates", {"aggregate": {"name": name, "availability_zone": zone}})
    assert created.status == 200
    return int(created.json["aggregate"]["id"])


def act(admin: Any, aggregate: int, action: str, value: Any) -> Any:
    return admin.post(f"/os-aggregates/{aggregate}/action", {action: value})


def test_an_aggregate_is_made_changed_and_deleted(admin: Any) -> None:
    created = admin.post("/os-aggregates", {"aggregate": {"name": "gen1", "availability_zone": "az1"}})
    assert created.json["aggregate"].keys() == {
        "id", "uuid", "name", "availability_zone", "created_at", "updated_at", "deleted", "deleted_at",
    }  # fmt: skip
    identifier = created.json["aggregate"]["id"]
    shown = admin.get(f"/os-aggregates/{identifier}").json["aggregate"]
    assert shown["hosts"] == []
    assert shown["metadata"] == {"availability_zone": "az1"}
    assert "uuid" not in admin.get(f"/os-aggregates/{identifier}", version="2.40").json["aggregate"]
    renamed = admin.put(f"/os-aggregates/{identifier}", {"aggregate": {"name": "gen2", "availability_zone": "az2"}})
    assert renamed.json["aggregate"]["name"] == "gen2"
    assert renamed.json["aggregate"]["metadata"] == {"availability_zone": "az2"}
    assert len(admin.get("/os-aggregates").json["aggregates"]) == 1
    assert admin.delete(f"/os-aggregates/{identifier}").status == 200
    missing = admin.get(f"/os-aggregates/{identifier}")
    assert (missing.status, missing.message) == (404, f"Aggregate {identifier} could not be found.")


def test_metadata_is_set_and_removed(admin: Any) -> None:
    aggregate = make(admin)
    answer = act(admin, aggregate, "set_metadata", {"metadata": {"gen": "1", "ssd": "yes"}})
    assert answer.json["aggregate"]["metadata"] == {"gen": "1", "ssd": "yes"}
    answer = act(admin, aggregate, "set_metadata", {"metadata": {"ssd": None, "availability_zone": "az1"}})
    assert answer.json["aggregate"]["metadata"] == {"gen": "1", "availability_zone": "az1"}
    assert answer.json["aggregate"]["availability_zone"] == "az1"
    assert act(admin, aggregate, "set_metadata", {"metadata": {"availability_zone": None}}).status == 200
    assert act(admin, aggregate, "set_metadata", {"metadata": {"availability_zone": " "}}).status == 400
    assert act(admin, aggregate, "set_metadata", {"metadata": {"a": 1}}).status == 400


def test_hosts_come_and_go_and_placement_knows(admin: Any, cloud: Any, real_placement: Any) -> None:
    node = cloud.host("host1")
    real_placement.ensure_provider(node.uuid, "host1")
    aggregate = make(admin)
    uuid = admin.get(f"/os-aggregates/{aggregate}").json["aggregate"]["uuid"]
    added = act(admin, aggregate, "add_host", {"host": "host1"})
    assert added.json["aggregate"]["hosts"] == ["host1"]
    assert real_placement.get_aggregates(node.uuid) == {uuid}
    assert act(admin, aggregate, "add_host", {"host": "host1"}).status == 409
    refused = admin.delete(f"/os-aggregates/{aggregate}")
    assert refused.status == 400
    assert refused.message == f"Cannot delete aggregate {aggregate}. Reason: Host aggregate is not empty."
    removed = act(admin, aggregate, "remove_host", {"host": "host1"})
    assert removed.json["aggregate"]["hosts"] == []
    assert real_placement.get_aggregates(node.uuid) == set()
    assert act(admin, aggregate, "remove_host", {"host": "host1"}).status == 404


@pytest.mark.parametrize(("identifier", "status"), [("-1", 404), ("99", 404), ("--1", 400), ("one", 400)])
def test_ids_are_integers(admin: Any, identifier: str, status: int) -> None:
    assert admin.get(f"/os-aggregates/{identifier}").status == status


def test_unknown_hosts_are_404(admin: Any) -> None:
    answer = act(admin, make(admin), "add_host", {"host": "nobody"})
    assert (answer.status, answer.message) == (404, "Compute host nobody could not be found.")


def test_a_host_is_in_one_zone_only(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    first, second, no_zone = make(admin, "a", "az1"), make(admin, "b", "az2"), make(admin, "c")
    assert act(admin, first, "add_host", {"host": "host1"}).status == 200
    refused = act(admin, second, "add_host", {"host": "host1"})
    assert refused.status == 409
    assert "One or more hosts already in availability zone(s) ['az1']" in refused.message
    assert act(admin, no_zone, "add_host", {"host": "host1"}).status == 200
    assert act(admin, no_zone, "set_metadata", {"metadata": {"availability_zone": "az2"}}).status == 400


def test_servers_do_not_change_zone_behind_their_owners_back(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    zoned = make(admin, "zoned", "az1")
    act(admin, zoned, "add_host", {"host": "host1"})
    cloud.server(host="host1")
    renamed = admin.put(f"/os-aggregates/{zoned}", {"aggregate": {"availability_zone": "az2"}})
    assert renamed.status == 400
    assert "One or more hosts contain instances in this zone" in renamed.message
    assert act(admin, zoned, "remove_host", {"host": "host1"}).status == 409
    cloud.host("host2")
    cloud.server(host="host2")
    assert act(admin, zoned, "add_host", {"host": "host2"}).status == 409


@pytest.mark.parametrize(
    "aggregate", [{}, {"name": ""}, {"name": "a", "x": 1}, {"name": "a", "availability_zone": "a:b"}]
)
def test_bad_aggregates_are_refused(admin: Any, aggregate: dict[str, Any]) -> None:
    assert admin.post("/os-aggregates", {"aggregate": aggregate}).status == 400


def test_names_are_taken_once(admin: Any) -> None:
    make(admin, "a")
    other = make(admin, "b")
    assert admin.post("/os-aggregates", {"aggregate": {"name": "a"}}).status == 409
    assert admin.put(f"/os-aggregates/{other}", {"aggregate": {"name": "a"}}).status == 409
    assert admin.put("/os-aggregates/99", {"aggregate": {"name": "z"}}).status == 404
    assert admin.get("/os-aggregates/ninety").status == 400
    # More digits than Python reads.
    assert admin.get(f"/os-aggregates/{'9' * 5000}").status == 400


def test_images_are_cached_by_a_conductor(admin: Any, conductor: Any) -> None:
    image_id, aggregate_id = "70a599e0-31e7-49b7-b260-868f441e862b", make(admin)
    body = {"cache": [{"id": image_id}]}
    assert admin.post(f"/os-aggregates/{aggregate_id}/images", body).status == 202
    ((name, asked),) = conductor.calls
    assert (name, asked["aggregate_id"], asked["image_ids"]) == ("cache_images", aggregate_id, [image_id])
    assert admin.post("/os-aggregates/1/images", body, version="2.80").status == 404


def test_aggregates_are_for_administrators(api: Any) -> None:
    assert api.get("/os-aggregates").status == 403
    assert api.post("/os-aggregates", {"aggregate": {"name": "a"}}).status == 403


def test_zones_are_listed_with_hosts_for_administrators_only(admin: Any, api: Any, cloud: Any) -> None:
    cloud.host("host1")
    cloud.host("host2", "cell2")
    act(admin, make(admin, "a", "az1"), "add_host", {"host": "host1"})
    assert api.get("/os-availability-zone").json == {
        "availabilityZoneInfo": [
            {"zoneName": "az1", "zoneState": {"available": True}, "hosts": None},
            {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None},
        ]
    }
    assert api.get("/os-availability-zone/detail").status == 403
    detail = admin.get("/os-availability-zone/detail").json["availabilityZoneInfo"]
    service = detail[0]["hosts"]["host1"]["nova-compute"]
    assert (service["available"], service["active"]) == (True, True)


def test_a_zone_whose_services_are_disabled_shows_no_hosts(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    body = {"host": "host1", "binary": "nova-compute"}
    assert admin.put("/os-services/disable", body, version="2.1").status == 200
    (zone,) = admin.get("/os-availability-zone/detail").json["availabilityZoneInfo"]
    assert zone == {"zoneName": "nova", "zoneState": {"available": False}, "hosts": None}
