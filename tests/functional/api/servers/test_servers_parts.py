"""What belongs to a server: metadata, tags, instance actions, addresses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from causeway.model.instance import ActionEvent, Instance, InstanceAction
from causeway.model.states import TaskState, VmState
from causeway.store.cell import actions, instances
from tests.functional.api.servers.server_parts import (
    server_with_parts,
    set_states,
)


@pytest.fixture
def server(cloud: Any) -> Instance:
    return server_with_parts(cloud)


class TestMetadata:
    def test_metadata_is_read_and_changed(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/metadata"
        assert api.get(path).json == {"metadata": {"a": "1"}}
        assert api.post(path, {"metadata": {"b": "2"}}).json == {"metadata": {"b": "2"}}
        assert api.get(path).json == {"metadata": {"a": "1", "b": "2"}}
        assert api.put(f"{path}/c", {"meta": {"c": "3"}}).json == {"meta": {"c": "3"}}
        assert api.get(f"{path}/c").json == {"meta": {"c": "3"}}
        assert api.delete(f"{path}/a").status == 204
        assert api.put(path, {"metadata": {"only": "this"}}).json == {"metadata": {"only": "this"}}
        assert api.get(path).json == {"metadata": {"only": "this"}}
        assert api.get(f"{path}/a").fault == "itemNotFound"
        assert api.delete(f"{path}/a").fault == "itemNotFound"

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "", {"metadata": {"k": 1}}),
            ("POST", "", {"metadata": []}),
            ("POST", "", {}),
            ("PUT", "", {"metadata": {"": "v"}}),
            ("POST", "", {"metadata": {"k" * 256: "v"}}),
            ("PUT", "/k", {"meta": {}}),
            ("PUT", "/k", {"meta": {"other": "v"}}),
            ("PUT", "/k", {"meta": {"k": "v", "l": "w"}}),
            ("PUT", "/k", {"meta": {"k": None}}),
            ("POST", "", {"metadata": {"k": "v"}, "x": 1}),
        ],
    )
    def test_bad_metadata_is_refused(self, api: Any, server: Instance, method: str, path: str, body: Any) -> None:
        answer = api.call(method, f"/servers/{server.uuid}/metadata{path}", body)
        assert answer.fault == "badRequest", answer.text

    def test_metadata_is_limited_by_quota(self, api: Any, cloud: Any, server: Instance) -> None:
        cloud.option("quota", "metadata_items", 1)
        path = f"/servers/{server.uuid}/metadata"
        assert api.post(path, {"metadata": {"b": "2"}}).fault == "forbidden"
        assert api.put(path, {"metadata": {"b": "2"}}).status == 200

    def test_states_and_locks_refuse_changes_of_metadata(self, api: Any, cloud: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/metadata"
        set_states(cloud, server, VmState.RESIZED)
        assert api.post(path, {"metadata": {"b": "2"}}).fault == "conflictingRequest"
        assert api.delete(f"{path}/a").fault == "conflictingRequest"
        set_states(cloud, server, VmState.ACTIVE, TaskState.RESIZE_PREP)
        assert api.post(path, {"metadata": {"b": "2"}}).status == 200
        instances.update(cloud.cell("cell1"), server.uuid, locked=True)
        assert api.post(path, {"metadata": {"b": "2"}}).fault == "conflictingRequest"


class TestTags:
    def test_tags_are_read_and_changed(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/tags"
        assert api.get(path).json == {"tags": ["x"]}
        assert api.get(f"{path}/x").status == 204 and api.get(f"{path}/y").status == 404
        added = api.put(f"{path}/y")
        assert added.status == 201 and added.headers["location"].endswith(f"{path}/y")
        assert api.put(f"{path}/y").status == 204
        assert api.put(path, {"tags": ["b", "a", "b"]}).json == {"tags": ["a", "b"]}
        assert api.delete(f"{path}/a").status == 204 and api.delete(f"{path}/a").status == 404
        assert api.delete(path).status == 204
        assert api.get(path).json == {"tags": []}
        assert api.get(path, version="2.25").status == 404

    def test_bad_tags_are_refused(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/tags"
        for body in ({"tags": ["a,b"]}, {"tags": [""]}, {"tags": ["x" * 61]}, {"tags": "x"}, {"tags": [1]}, {}):
            assert api.put(path, body).fault == "badRequest"
        assert api.put(f"{path}/{'x' * 61}").fault == "badRequest"
        assert api.put(f"{path}/a,b").fault == "badRequest"
        assert api.put(path, {"tags": [str(n) for n in range(50)]}).status == 200
        assert api.put(f"{path}/one-more").fault == "badRequest"
        assert api.put(path, {"tags": [str(n) for n in range(51)]}).fault == "badRequest"

    def test_states_matter_and_locks_do_not(self, api: Any, cloud: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/tags"
        instances.update(cloud.cell("cell1"), server.uuid, locked=True)
        assert api.put(f"{path}/y").status == 201
        set_states(cloud, server, VmState.RESIZED)
        assert api.put(f"{path}/z").fault == "conflictingRequest"
        assert api.delete(path).fault == "conflictingRequest"


@pytest.fixture
def history(cloud: Any, server: Instance) -> Instance:
    """Three actions; the last one failed on host1."""
    start = datetime(2026, 1, 1)
    for number, name in enumerate(("create", "stop", "resize")):
        moment = start + timedelta(hours=number)
        action = InstanceAction(name, server.uuid, f"req-{number}", "user", "project", moment, moment)
        actions.start(cloud.cell("cell1"), action)
    event = ActionEvent("conductor_migrate_server", start, start, "Error", "Traceback", "host1", "No valid host")
    actions.record_event(cloud.cell("cell1"), server.uuid, "req-2", event)
    return server


class TestHistory:
    def test_actions_are_listed_newest_first(self, api: Any, history: Instance) -> None:
        found = api.get(f"/servers/{history.uuid}/os-instance-actions").json["instanceActions"]
        assert [action["action"] for action in found] == ["resize", "stop", "create"]
        assert found[0]["message"] == "Error" and "updated_at" in found[0]
        assert found[1]["start_time"] == "2026-01-01T01:00:00.000000"
        old = api.get(f"/servers/{history.uuid}/os-instance-actions", version="2.57").json
        assert "updated_at" not in old["instanceActions"][0]

    def test_actions_are_listed_in_pages(self, api: Any, history: Instance) -> None:
        path = f"/servers/{history.uuid}/os-instance-actions"
        first = api.get(f"{path}?limit=2").json
        assert len(first["instanceActions"]) == 2 and first["links"][0]["rel"] == "next"
        assert first["links"][0]["href"].endswith("limit=2&marker=req-1")
        rest = api.get(f"{path}?limit=2&marker=req-1").json
        assert [action["action"] for action in rest["instanceActions"]] == ["create"] and "links" not in rest
        since = api.get(f"{path}?changes-since=2026-01-01T00:30:00Z&changes-before=2026-01-01T01:30:00Z").json
        assert [action["action"] for action in since["instanceActions"]] == ["stop"]

    @pytest.mark.parametrize(
        "query",
        [
            "limit=x",
            "marker=unknown",
            "changes-since=x",
            "nonsense=1",
            "changes-since=2026-01-02&changes-before=2026-01-01",
        ],
    )
    def test_bad_queries_are_refused(self, api: Any, history: Instance, query: str) -> None:
        assert api.get(f"/servers/{history.uuid}/os-instance-actions?{query}").fault == "badRequest"

    def test_events_are_shown_by_version_and_policy(self, api: Any, admin: Any, history: Instance) -> None:
        path = f"/servers/{history.uuid}/os-instance-actions/req-2"
        assert "events" not in api.get(path, version="2.50").json["instanceAction"]
        (event,) = api.get(path).json["instanceAction"]["events"]
        assert event.keys() == {"event", "start_time", "finish_time", "result", "hostId"}
        (event,) = admin.get(path).json["instanceAction"]["events"]
        assert event["traceback"] == "Traceback" and event["host"] == "host1" and event["details"] == "No valid host"
        (event,) = admin.get(path, version="2.50").json["instanceAction"]["events"]
        assert event.keys() == {"event", "start_time", "finish_time", "result", "traceback"}
        assert api.get(f"/servers/{history.uuid}/os-instance-actions/req-9").status == 404

    def test_actions_of_a_deleted_server_are_listed_from_2_21(self, api: Any, cloud: Any, history: Instance) -> None:
        instances.soft_delete(cloud.cell("cell1"), history.uuid)
        path = f"/servers/{history.uuid}/os-instance-actions"
        assert len(api.get(path, version="2.21").json["instanceActions"]) == 3
        assert api.get(path, version="2.20").status == 404
        assert api.by("other:elsewhere").get(path).status == 404


class TestSmallThings:
    def test_addresses_are_listed_by_network(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/ips"
        listed = [{"version": 4, "addr": "10.0.0.5"}]
        assert api.get(path).json == {"addresses": {"demo-net": listed}}
        assert api.get(f"{path}/demo-net").json == {"demo-net": listed}
        assert api.get(f"{path}/other").status == 404

    def test_topology_and_password_are_shown(self, api: Any, server: Instance) -> None:
        assert api.get(f"/servers/{server.uuid}/topology").json == {"nodes": [], "pagesize_kb": None}
        assert api.get(f"/servers/{server.uuid}/topology", version="2.77").status == 404
        assert api.get(f"/servers/{server.uuid}/os-server-password").json == {"password": ""}
        assert api.delete(f"/servers/{server.uuid}/os-server-password").status == 204
