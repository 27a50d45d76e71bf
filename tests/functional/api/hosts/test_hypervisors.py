"""Hypervisors."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

import pytest

from causeway.store.api import cells
from causeway.store.database import statements

SIZES = {
    "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used", "running_vms", "free_ram_mb",
    "free_disk_gb", "current_workload", "disk_available_least", "cpu_info",
}  # fmt: skip


@pytest.fixture
def nodes(cloud: Any) -> list[Any]:
    return [
        cloud.host("host1", "cell1", vcpus_used=2, memory_mb_used=1024, cpu_info={"vendor": "any"}, uptime="up 1 day"),
        cloud.host("host2", "cell2", hypervisor_type="QEMU"),
    ]


def test_the_list_names_them(admin: Any, nodes: list[Any]) -> None:
    listed = admin.get("/os-hypervisors").json["hypervisors"]
    assert listed == [
        {"id": node.uuid, "hypervisor_hostname": node.host, "state": "up", "status": "enabled"} for node in nodes
    ]
    assert isinstance(admin.get("/os-hypervisors", version="2.52").json["hypervisors"][0]["id"], int)


@pytest.mark.usefixtures("nodes")
def test_details_change_with_the_version(admin: Any) -> None:
    old = admin.get("/os-hypervisors/detail", version="2.1").json["hypervisors"][0]
    assert old["cpu_info"] == '{"vendor":"any"}'
    assert old.keys() >= SIZES
    assert (old["free_ram_mb"], old["vcpus_used"]) == (7168, 2)
    assert admin.get("/os-hypervisors/detail", version="2.28").json["hypervisors"][0]["cpu_info"] == {"vendor": "any"}
    new = admin.get("/os-hypervisors/detail", version="2.88").json["hypervisors"][0]
    assert not SIZES & new.keys()
    assert new["uptime"] == "up 1 day"
    assert new["service"]["host"] == "host1"


def test_one_is_shown_with_its_servers(admin: Any, cloud: Any, nodes: list[Any]) -> None:
    server = cloud.server(host="host1", display_name="mine")
    cloud.server(host="host1", hidden=True)
    shown = admin.get(f"/os-hypervisors/{nodes[0].uuid}?with_servers=true").json["hypervisor"]
    assert shown["servers"] == [{"uuid": server.uuid, "name": "mine"}]
    listed = admin.get("/os-hypervisors?with_servers=true").json["hypervisors"]
    assert listed[1]["servers"] == []
    assert "servers" not in admin.get("/os-hypervisors?with_servers=true", version="2.74").json["hypervisors"][1]
    assert admin.get(f"/os-hypervisors/{uuid.uuid4()}").status == 404
    assert admin.get("/os-hypervisors/no-uuid").status == 400
    assert admin.get("/os-hypervisors/99", version="2.52").status == 404


def test_one_is_shown_without_reading_the_others(admin: Any, cloud: Any, nodes: list[Any]) -> None:
    """Statements by database; a cell that has many hypervisors is asked for one."""

    def statements_for(path: str, version: str) -> dict[str, int]:
        before = statements.snapshot()
        assert admin.get(f"/os-hypervisors/{path}", version=version).status == 200
        return dict(statements.snapshot() - before)

    shown = [
        (f"{nodes[0].uuid}", "2.53", {}),
        (f"{nodes[0].uuid}?with_servers=true", "2.75", {"cell1": 1}),
        (f"{nodes[0].uuid}/uptime", "2.87", {}),
    ]
    # Nobody has recorded yet whose node it is, so every cell may have it.
    for path, version, more in shown:
        assert statements_for(path, version) == {"api": 2, "cell1": 2 + more.get("cell1", 0), "cell2": 1}
    cells.map_host(cloud.services.api, "host1", cloud.cell_uuids["cell1"], node_uuid=nodes[0].uuid)
    for path, version, more in shown:
        assert statements_for(path, version) == {"api": 1, "cell1": 2 + more.get("cell1", 0)}


@pytest.mark.parametrize("hypervisor_id", ["0", "99", "01", "9" * 9, "9" * 20, "9" * 3000, "\u00b2", "\u0661", "x"])
def test_a_number_that_no_hypervisor_has_is_not_found(admin: Any, nodes: list[Any], hypervisor_id: str) -> None:
    assert nodes
    assert admin.get(f"/os-hypervisors/{quote(hypervisor_id)}", version="2.52").status == 404


def test_each_is_shown_by_the_id_that_the_list_gives_it(admin: Any, cloud: Any, nodes: list[Any]) -> None:
    cloud.host("host3", "cell1")
    for version in ("2.52", "2.53"):
        listed = admin.get("/os-hypervisors/detail", version=version).json["hypervisors"]
        assert len(listed) == 3
        # Before 2.53 cells count for themselves: the first one that has a number is shown.
        first = {one["id"]: one for one in reversed(listed)}
        for number, expected in first.items():
            assert admin.get(f"/os-hypervisors/{number}", version=version).json["hypervisor"] == expected
    assert nodes


@pytest.mark.usefixtures("nodes")
def test_hypervisors_are_found_by_a_part_of_their_name(admin: Any) -> None:
    found = admin.get("/os-hypervisors?hypervisor_hostname_pattern=ost2").json["hypervisors"]
    assert [one["hypervisor_hostname"] for one in found] == ["host2"]
    missing = admin.get("/os-hypervisors?hypervisor_hostname_pattern=other")
    assert (missing.status, missing.message) == (404, "No hypervisor matching 'other' could be found.")
    assert admin.get("/os-hypervisors?hypervisor_hostname_pattern=ost&limit=1").status == 400
    assert len(admin.get("/os-hypervisors/host/search", version="2.52").json["hypervisors"]) == 2
    assert len(admin.get("/os-hypervisors/host1/servers", version="2.52").json["hypervisors"]) == 1
    assert admin.get("/os-hypervisors/other/search", version="2.52").status == 404
    assert admin.get("/os-hypervisors/host/search", version="2.53").status == 404


def test_hypervisors_are_listed_in_pages(admin: Any, nodes: list[Any]) -> None:
    page = admin.get("/os-hypervisors?limit=1").json
    assert len(page["hypervisors"]) == 1
    following = page["hypervisors_links"][0]["href"]
    assert following.endswith(f"/os-hypervisors?limit=1&marker={nodes[0].uuid}")
    second = admin.get("/os-hypervisors" + following[following.index("?") :]).json
    assert second["hypervisors"][0]["id"] == nodes[1].uuid
    assert admin.get(f"/os-hypervisors?marker={uuid.uuid4()}").status == 400


@pytest.mark.usefixtures("nodes")
def test_statistics_and_uptime_are_shown_until_2_87(admin: Any) -> None:
    sums = admin.get("/os-hypervisors/statistics", version="2.87").json["hypervisor_statistics"]
    assert (sums["count"], sums["vcpus"], sums["free_ram_mb"]) == (2, 16, 15360)
    assert admin.get("/os-hypervisors/statistics", version="2.88").status == 404
    first, second = admin.get("/os-hypervisors", version="2.87").json["hypervisors"]
    shown = admin.get(f"/os-hypervisors/{first['id']}/uptime", version="2.87").json["hypervisor"]
    assert shown == first | {"uptime": "up 1 day"}
    assert admin.get(f"/os-hypervisors/{second['id']}/uptime", version="2.87").status == 501


def test_hypervisors_are_for_administrators(api: Any) -> None:
    for path in ("/os-hypervisors", "/os-hypervisors/detail", f"/os-hypervisors/{uuid.uuid4()}"):
        assert api.get(path).status == 403
