"""What other services report about servers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway.model.events import ExternalEvent


@pytest.fixture
def service(api: Any) -> Any:
    return api.by("service:service")


def event(server: str, name: str = "network-vif-plugged", **more: Any) -> dict[str, Any]:
    return {"name": name, "server_uuid": server} | more


def test_events_are_handed_to_the_conductor(service: Any, cloud: Any) -> None:
    server = cloud.server(host="host1")
    answer = service.post("/os-server-external-events", {"events": [event(server.uuid, tag="port", status="failed")]})
    assert answer.status == 200
    assert answer.json == {
        "events": [
            {"name": "network-vif-plugged", "server_uuid": server.uuid, "tag": "port", "status": "failed", "code": 200}
        ]
    }
    ((method, arguments),) = cloud.services.conductor.calls
    assert method == "external_events"
    (handed,) = arguments["hosts"]
    assert handed.host == server.host
    assert handed.events == [ExternalEvent("network-vif-plugged", server.uuid, "failed", "port")]


def test_every_event_is_answered_for_on_its_own(service: Any, cloud: Any) -> None:
    good, homeless, missing = cloud.server(host="host1"), cloud.server("cell2", host=None), str(uuid.uuid4())
    events = [
        event(good.uuid),
        event(homeless.uuid),
        event(missing),
        event(good.uuid, "volume-extended"),
        event(good.uuid, "power-update", tag="POWER_MAYBE"),
    ]
    answer = service.post("/os-server-external-events", {"events": events})
    assert answer.status == 207
    assert [one["code"] for one in answer.json["events"]] == [200, 422, 404, 400, 400]
    assert [one["status"] for one in answer.json["events"]] == ["completed"] + ["failed"] * 4
    (handed,) = cloud.services.conductor.calls[0][1]["hosts"]
    assert [one.server_uuid for one in handed.events] == [good.uuid]


def test_without_any_server_it_is_404(service: Any) -> None:
    answer = service.post("/os-server-external-events", {"events": [event(str(uuid.uuid4()))]})
    assert (answer.status, answer.message) == (404, "No instances found for any event")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("volume-extended", 51),
        ("power-update", 76),
        ("accelerator-request-bound", 82),
        ("volume-reimaged", 93),
    ],
)
def test_names_come_with_versions(service: Any, cloud: Any, name: str, first: int) -> None:
    server = cloud.server(host="host1")
    body = {"events": [event(server.uuid, name, tag="POWER_ON")]}
    assert service.post("/os-server-external-events", body, version=f"2.{first - 1}").status == 400
    assert service.post("/os-server-external-events", body, version=f"2.{first}").status == 200


@pytest.mark.parametrize("events", [[], [{}], [{"name": "network-changed"}], [event("no-uuid")], "x"])
def test_bad_events_are_refused(service: Any, events: Any) -> None:
    assert service.post("/os-server-external-events", {"events": events}).status == 400


def test_events_come_from_services(api: Any) -> None:
    assert api.post("/os-server-external-events", {"events": [event(str(uuid.uuid4()))]}).status == 403
