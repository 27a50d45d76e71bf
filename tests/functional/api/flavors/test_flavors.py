"""Flavors, as the Compute API has them."""

from __future__ import annotations

from typing import Any

SMALL = {"name": "small", "id": "1", "ram": 512, "vcpus": 1, "disk": 10}


def make(admin: Any, **fields: Any) -> None:
    assert admin.post("/flavors", {"flavor": SMALL | fields}).status == 200


def test_a_flavor_is_created_and_shown(admin: Any, api: Any) -> None:
    created = admin.post("/flavors", {"flavor": SMALL | {"description": "for tests"}})
    assert created.status == 200
    assert created.json["flavor"] == {
        "id": "1",
        "name": "small",
        "ram": 512,
        "disk": 10,
        "vcpus": 1,
        "swap": 0,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "os-flavor-access:is_public": True,
        "description": "for tests",
        "extra_specs": {},
        "links": [
            {"rel": "self", "href": "http://falconframework.org/v2.1/flavors/1"},
            {"rel": "bookmark", "href": "http://falconframework.org/flavors/1"},
        ],
    }
    assert api.get("/flavors/1").json == created.json


def test_flavors_change_with_the_version(admin: Any, api: Any) -> None:
    make(admin)
    first = api.get("/flavors/1", version="2.1").json["flavor"]
    assert first["swap"] == ""
    assert first["OS-FLV-DISABLED:disabled"] is False
    assert first["rxtx_factor"] == 1.0
    assert "description" not in first
    assert "description" in api.get("/flavors/1", version="2.55").json["flavor"]
    assert "extra_specs" not in api.get("/flavors/1", version="2.60").json["flavor"]
    assert api.get("/flavors/1", version="2.75").json["flavor"]["swap"] == 0
    assert "rxtx_factor" not in api.get("/flavors/1", version="2.102").json["flavor"]


def test_only_administrators_manage_flavors(api: Any) -> None:
    refused = api.post("/flavors", {"flavor": SMALL})
    assert refused.status == 403
    assert refused.message == "Policy doesn't allow os_compute_api:os-flavor-manage:create to be performed."


def test_bad_flavors_are_refused(admin: Any) -> None:
    answer = admin.post("/flavors", {"flavor": SMALL | {"ram": "lots"}})
    assert (answer.status, answer.fault) == (400, "badRequest")
    assert answer.message.startswith("Invalid input for field/attribute ram. Value: lots.")
    assert admin.post("/flavors", {"flavor": SMALL | {"vcpus": 0}}).status == 400
    assert admin.post("/flavors", {"flavor": SMALL | {"colour": "red"}}).status == 400
    assert admin.post("/flavors", {"flavor": {"name": "x"}}).status == 400
    assert admin.post("/flavors", {"flavor": SMALL | {"rxtx_factor": 1.0}}, version="2.102").status == 400


def test_ids_and_names_are_taken_once(admin: Any) -> None:
    make(admin)
    assert admin.post("/flavors", {"flavor": SMALL | {"id": "2"}}).status == 409
    assert admin.post("/flavors", {"flavor": SMALL | {"name": "other"}}).status == 409


def test_lists_are_filtered_sorted_and_paged(admin: Any, api: Any) -> None:
    for number in (1, 2, 3):
        make(admin, id=str(number), name=f"f{number}", ram=512 * number, disk=30 - number)

    def ids(query: str) -> list[str]:
        return [flavor["id"] for flavor in api.get(f"/flavors{query}").json["flavors"]]

    assert ids("") == ["1", "2", "3"]
    assert ids("?minRam=1000") == ["2", "3"]
    assert ids("?minDisk=28") == ["1", "2"]
    assert ids("?sort_key=memory_mb&sort_dir=desc") == ["3", "2", "1"]
    assert ids("?limit=1&marker=1") == ["2"]
    assert ids("?name=f3") == ["3"]
    page = api.get("/flavors/detail?limit=2").json
    assert page["flavors_links"] == [
        {"rel": "next", "href": "http://falconframework.org/v2.1/flavors/detail?limit=2&marker=2"}
    ]
    assert api.get("/flavors?marker=unknown").status == 400
    assert api.get("/flavors?minRam=lots").status == 400
    # More digits than Python reads.
    assert api.get(f"/flavors?minRam={'9' * 5000}").status == 400


def test_private_flavors_are_for_those_with_access(admin: Any, api: Any) -> None:
    make(admin, **{"os-flavor-access:is_public": False})
    assert api.get("/flavors/1").status == 404
    assert api.get("/flavors").json == {"flavors": []}
    assert admin.get("/flavors").json == {"flavors": []}
    assert len(admin.get("/flavors?is_public=none").json["flavors"]) == 1
    assert len(admin.get("/flavors?is_public=false").json["flavors"]) == 1


def test_a_description_can_be_changed_and_a_flavor_deleted(admin: Any, api: Any) -> None:
    make(admin)
    assert admin.put("/flavors/1", {"flavor": {"description": "new"}}).json["flavor"]["description"] == "new"
    assert admin.put("/flavors/1", {"flavor": {"description": "new"}}, version="2.54").status == 404
    assert admin.delete("/flavors/1").status == 202
    missing = api.get("/flavors/1")
    assert (missing.status, missing.fault) == (404, "itemNotFound")
    assert missing.message == "Flavor 1 could not be found."
