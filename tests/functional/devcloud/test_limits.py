"""Unified limits of devcloud's Identity service: kept by administrators, read by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def service(devcloud: Any) -> Iterator[str]:
    """A service to limit; its limits go with it."""
    made = devcloud.ok("POST", "/identity/v3/services", {"service": {"type": "baking", "name": "oven"}}, user="admin")
    yield made["service"]["id"]
    assert devcloud.call("DELETE", f"/identity/v3/services/{made['service']['id']}", user="admin").status_code == 204


def registered(devcloud: Any, service: str, name: str = "loaves", limit: Any = 3, **more: Any) -> Any:
    one = {"service_id": service, "region_id": "RegionOne", "resource_name": name, "default_limit": limit} | more
    return devcloud.call("POST", "/identity/v3/registered_limits", {"registered_limits": [one]}, user="admin")


def own(devcloud: Any, service: str, project: str, name: str = "loaves", limit: Any = 5) -> Any:
    one = {
        "service_id": service,
        "region_id": "RegionOne",
        "resource_name": name,
        "resource_limit": limit,
        "project_id": project,
    }
    return devcloud.call("POST", "/identity/v3/limits", {"limits": [one]}, user="admin")


def test_limits_are_made_found_changed_and_deleted(devcloud: Any, service: str) -> None:
    (made,) = registered(devcloud, service).json()["registered_limits"]
    assert (made["resource_name"], made["default_limit"], made["region_id"]) == ("loaves", 3, "RegionOne")
    (limit,) = own(devcloud, service, devcloud.project("demo")).json()["limits"]
    assert limit["resource_limit"] == 5
    query = f"service_id={service}&region_id=RegionOne"
    (found,) = devcloud.ok("GET", f"/identity/v3/registered_limits?{query}")["registered_limits"]
    assert found == made
    assert devcloud.ok("GET", f"/identity/v3/limits?{query}&project_id={devcloud.project('other')}")["limits"] == []
    path = f"/identity/v3/limits/{limit['id']}"
    changed = devcloud.ok("PATCH", path, {"limit": {"resource_limit": -1}}, user="admin")
    assert devcloud.ok("GET", path, user="demo") == changed and changed["limit"]["resource_limit"] == -1
    of_registered = f"/identity/v3/registered_limits/{made['id']}"
    assert devcloud.call("DELETE", of_registered, user="admin").status_code == 403
    assert devcloud.call("DELETE", path, user="admin").status_code == 204
    shown = devcloud.ok("PATCH", of_registered, {"registered_limit": {"default_limit": 9}}, user="admin")
    assert shown["registered_limit"]["default_limit"] == 9
    assert devcloud.call("DELETE", of_registered, user="admin").status_code == 204
    assert devcloud.call("GET", of_registered).status_code == 404


def test_the_model_is_flat(devcloud: Any) -> None:
    assert devcloud.ok("GET", "/identity/v3/limits/model", user="demo")["model"]["name"] == "flat"


def test_others_limits_are_not_shown(devcloud: Any, service: str) -> None:
    registered(devcloud, service)
    (limit,) = own(devcloud, service, devcloud.project("demo")).json()["limits"]
    assert [row["id"] for row in devcloud.ok("GET", "/identity/v3/limits", user="demo")["limits"]] == [limit["id"]]
    assert devcloud.ok("GET", "/identity/v3/limits", user="other")["limits"] == []
    assert devcloud.call("GET", f"/identity/v3/limits/{limit['id']}", user="other").status_code == 403
    refused = devcloud.call("DELETE", f"/identity/v3/limits/{limit['id']}", user="demo")
    assert refused.status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [{"limit": -2}, {"limit": "3"}, {"limit": True}, {"limit": 2**31}, {"name": ""}, {"region_id": "Atlantis"}],
)
def test_what_can_not_be_is_refused(devcloud: Any, service: str, wrong: dict[str, Any]) -> None:
    assert registered(devcloud, service, **wrong).status_code == 400


def test_there_is_one_of_each(devcloud: Any, service: str) -> None:
    project = devcloud.project("demo")
    assert own(devcloud, service, project).status_code == 403
    assert [registered(devcloud, service).status_code for _ in range(2)] == [201, 409]
    assert [own(devcloud, service, project).status_code for _ in range(2)] == [201, 409]
