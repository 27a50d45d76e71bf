"""What projects used."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from causeway.model.flavor import Flavor

BIG = Flavor("9", "big", vcpus=4, memory_mb=1024, root_gb=10)
DAY = "start=2026-08-02T00:00:00&end=2026-08-03T00:00:00"


def test_hours_within_the_period_are_counted_over_cells(admin: Any, api: Any, cloud: Any) -> None:
    cloud.server("cell1", flavor=BIG, launched_at=datetime(2026, 8, 1))
    cloud.server("cell2", flavor=BIG, launched_at=datetime(2026, 8, 2, 12), terminated_at=datetime(2026, 8, 2, 18))
    cloud.server("cell2", launched_at=datetime(2026, 8, 4))
    cloud.server("cell2", launched_at=datetime(2026, 8, 1), hidden=True)
    usage = api.get(f"/os-simple-tenant-usage/project?{DAY}").json["tenant_usage"]
    assert usage["total_hours"] == 30
    assert usage["total_vcpus_usage"] == 120
    assert usage["total_memory_mb_usage"] == 30 * 1024
    assert usage["total_local_gb_usage"] == 300
    assert sorted(server["hours"] for server in usage["server_usages"]) == [6, 24]
    listed = admin.get(f"/os-simple-tenant-usage?{DAY}").json["tenant_usages"]
    assert [one["tenant_id"] for one in listed] == ["project"]
    assert "server_usages" not in listed[0]
    assert "server_usages" in admin.get(f"/os-simple-tenant-usage?{DAY}&detailed=1").json["tenant_usages"][0]
    page = admin.get(f"/os-simple-tenant-usage?{DAY}&limit=1").json
    assert page["tenant_usages_links"][0]["rel"] == "next"


def test_members_see_the_usage_of_their_project_only(api: Any) -> None:
    assert api.get("/os-simple-tenant-usage").status == 403
    assert api.get("/os-simple-tenant-usage/elsewhere").status == 403
    assert api.get("/os-simple-tenant-usage/project").json == {"tenant_usage": {}}
    assert api.get("/os-simple-tenant-usage/project?start=sometime").status == 400
    assert api.get("/os-simple-tenant-usage/project?start=2026-08-02&end=2026-08-01").status == 400
    # There is no time four weeks before.
    assert api.get("/os-simple-tenant-usage/project?end=0001-01-01").status == 400
