"""Compute services."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus
from causeway.store.api import aggregates as aggregate_records
from causeway.store.api import cells as cell_records
from causeway.store.api import migrations
from causeway.store.cell import hosts
from causeway.store.database import utcnow
from tests.unit.store.listed_cloud import make_unreachable


def service_of(admin: Any, host: str) -> dict[str, Any]:
    (service,) = admin.get(f"/os-services?host={host}&binary=nova-compute").json["services"]
    return dict(service)


def test_services_of_all_cells_are_listed(admin: Any, cloud: Any) -> None:
    cloud.host("host1", "cell1")
    cloud.host("host2", "cell2")
    hosts.report_service(cloud.cell("cell1"), "controller", "nova-conductor", "conductor", 1)
    services = admin.get("/os-services").json["services"]
    assert {(service["binary"], service["host"], service["zone"]) for service in services} == {
        ("nova-compute", "host1", "nova"),
        ("nova-compute", "host2", "nova"),
        ("nova-conductor", "controller", "internal"),
    }
    assert services[0].keys() == {
        "id", "binary", "host", "zone", "status", "state", "updated_at", "disabled_reason", "forced_down",
    }  # fmt: skip
    assert isinstance(admin.get("/os-services", version="2.52").json["services"][0]["id"], int)
    assert "forced_down" not in admin.get("/os-services", version="2.10").json["services"][0]
    assert len(admin.get("/os-services?host=host2").json["services"]) == 1
    assert len(admin.get("/os-services?binary=nova-conductor").json["services"]) == 1


def test_a_service_that_does_not_report_is_down(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    service = service_of(admin, "host1")
    assert (service["state"], service["status"]) == ("up", "enabled")
    hosts.update_service(cloud.cell("cell1"), service["id"], last_seen_up=utcnow() - timedelta(seconds=61))
    assert service_of(admin, "host1")["state"] == "down"


def test_a_disabled_service_gets_the_trait(admin: Any, cloud: Any, real_placement: Any) -> None:
    node = cloud.host("host1")
    real_placement.ensure_provider(node.uuid, "host1")
    identifier = service_of(admin, "host1")["id"]
    answer = admin.put(f"/os-services/{identifier}", {"status": "disabled", "disabled_reason": "maintenance"})
    assert answer.status == 200
    assert answer.json["service"]["status"] == "disabled"
    assert answer.json["service"]["disabled_reason"] == "maintenance"
    assert real_placement.get_traits(node.uuid) == {"COMPUTE_STATUS_DISABLED"}
    enabled = admin.put(f"/os-services/{identifier}", {"status": "enabled"}).json["service"]
    assert (enabled["status"], enabled["disabled_reason"]) == ("enabled", None)
    assert real_placement.get_traits(node.uuid) == set()


def test_a_service_can_be_forced_down(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    identifier = service_of(admin, "host1")["id"]
    down = admin.put(f"/os-services/{identifier}", {"forced_down": True}).json["service"]
    assert (down["state"], down["forced_down"], down["status"]) == ("down", True, "enabled")
    assert admin.put(f"/os-services/{identifier}", {"forced_down": False}).json["service"]["state"] == "up"


def test_updates_that_make_no_sense_are_400(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    hosts.report_service(cloud.cell("cell1"), "controller", "nova-conductor", "conductor", 1)
    identifier = service_of(admin, "host1")["id"]
    assert admin.put(f"/os-services/{identifier}", {}).status == 400
    assert admin.put(f"/os-services/{identifier}", {"status": "asleep"}).status == 400
    assert admin.put(f"/os-services/{identifier}", {"disabled_reason": "why"}).status == 400
    assert admin.put(f"/os-services/{identifier}", {"status": "enabled", "disabled_reason": "why"}).status == 400
    assert admin.put("/os-services/no-uuid", {"status": "enabled"}).status == 400
    assert admin.put(f"/os-services/{uuid.uuid4()}", {"status": "enabled"}).status == 404
    conductor = admin.get("/os-services?binary=nova-conductor").json["services"][0]["id"]
    assert admin.put(f"/os-services/{conductor}", {"status": "disabled"}).status == 400


def test_services_are_named_by_host_and_binary_until_2_52(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    named = {"host": "host1", "binary": "nova-compute"}
    disabled = admin.put("/os-services/disable", named, version="2.52")
    assert disabled.json == {"service": named | {"status": "disabled"}}
    reason = admin.put("/os-services/disable-log-reason", named | {"disabled_reason": "why"}, version="2.52")
    assert reason.json == {"service": named | {"status": "disabled", "disabled_reason": "why"}}
    assert service_of(admin, "host1")["disabled_reason"] == "why"
    assert admin.put("/os-services/enable", named, version="2.1").json == {"service": named | {"status": "enabled"}}
    forced = admin.put("/os-services/force-down", named | {"forced_down": True}, version="2.11")
    assert forced.json == {"service": named | {"forced_down": True}}
    assert admin.put("/os-services/force-down", named | {"forced_down": True}, version="2.10").status == 404
    assert admin.put("/os-services/enable", named | {"host": "nobody"}, version="2.52").status == 404
    assert admin.put("/os-services/enable", named).status == 404


def test_a_compute_service_is_deleted_with_all_that_is_known_of_its_host(
    admin: Any, cloud: Any, real_placement: Any
) -> None:
    node = cloud.host("host1")
    real_placement.ensure_provider(node.uuid, "host1")
    aggregate = aggregate_records.create(cloud.services.api, "agg", {})
    aggregate_records.add_host(cloud.services.api, aggregate.id, "host1")
    identifier = service_of(admin, "host1")["id"]
    assert admin.delete(f"/os-services/{identifier}").status == 204
    assert admin.get("/os-services").json == {"services": []}
    assert real_placement.get_provider(node.uuid) is None
    assert aggregate_records.get(cloud.services.api, aggregate.id).hosts == []
    assert cell_records.hosts(cloud.services.api) == {}
    assert admin.delete(f"/os-services/{identifier}").status == 404


def test_a_service_with_servers_or_moves_stays(admin: Any, cloud: Any) -> None:
    cloud.host("host1")
    cloud.host("host2", "cell2")
    server = cloud.server(host="host1")
    refused = admin.delete(f"/os-services/{service_of(admin, 'host1')['id']}")
    assert refused.status == 409
    assert "hosting instances" in refused.message
    migration = Migration(
        uuid=str(uuid.uuid4()),
        instance_uuid=server.uuid,
        migration_type="resize",
        status=MigrationStatus.FINISHED,
        source_compute="host1",
        dest_compute="host2",
    )
    with cloud.services.api.write() as connection:
        migrations.insert_in(connection, migration)
    refused = admin.delete(f"/os-services/{service_of(admin, 'host2')['id']}")
    assert refused.status == 409
    assert "in-progress migrations" in refused.message


def test_services_are_for_administrators(api: Any) -> None:
    assert api.get("/os-services").status == 403


def test_hosts_of_a_cell_that_does_not_answer_are_unknown_from_2_69(
    admin: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.host("host1", "cell1")
    cloud.host("host2", "cell2")
    make_unreachable(cloud.cell("cell2"), monkeypatch)
    with cloud.cell("cell2").write() as connection:
        connection.exec_driver_sql("DROP TABLE services")
    assert len(admin.get("/os-services", version="2.68").json["services"]) == 1
    unknown = admin.get("/os-services", version="2.69").json["services"][1]
    assert unknown == {"binary": "nova-compute", "host": "host2", "status": "UNKNOWN"}
