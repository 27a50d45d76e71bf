"""A host of a whole cloud that reports nonsense and lies where consoles listen. Nobody else notices."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from openstack import exceptions

from causeway import errors
from causeway.cli.status import _certificates, _live_migration, _signed_orders
from causeway.context import admin_context
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.security.answers.lying import lying
from tests.security.journeys import HOST
from tests.security.reports.absurd import ABSURD

KIND = AuditedCloud
CLOUD: dict[str, Any] = {"overrides": {"console": {"host_networks": ["127.0.0.0/8"]}}}


def what_others_see(cloud: AuditedCloud, lie: str) -> None:
    """Reads all that is made of the records of all hosts."""
    embedded, compute = cloud.embedded, cloud.admin.compute
    for microversion in ("2.1", "2.87", "2.88"):
        for path in ("/os-hypervisors/detail", "/os-hypervisors/statistics"):
            answer = compute.get(path, microversion=microversion)
            # The newest has no statistics any more.
            gone = path.endswith("statistics") and microversion == "2.88"
            assert answer.status_code == (404 if gone else 200), f"{lie}: {answer.text[:500]}"
            assert len(answer.content) < 100_000, lie
    for cell in cell_records.list_cells(embedded.api_database):
        nodes = [] if cell.is_cell0 else hosts.list_nodes(embedded.cells.database(cell.uuid))
        assert _live_migration(nodes) and _certificates(nodes) and _signed_orders(cell, nodes), lie


def test_absurd_reports_fail_nothing_of_others(cloud: AuditedCloud) -> None:
    host = cloud.embedded.computes[HOST].host
    report = cloud.embedded.computes[HOST]._reporter._report()
    for name, lie in ABSURD.items():
        absurd = copy.deepcopy(report)
        lie(absurd)
        with suppress(errors.CausewayError):
            host.conductor.report_host(admin_context(), report=absurd)
        what_others_see(cloud, name)
    image = cloud.admin.image.create_image(
        "of a version", data=b"x", disk_format="raw", container_format="bare", img_hv_requested_version=">=0.1"
    )
    server = cloud.admin.compute.create_server(
        name="theirs", flavor_id="gen1.small", image_id=image.id, networks=[{"uuid": cloud.network_id}]
    )
    cloud.admin.compute.delete_server(cloud.wait(server, "ACTIVE"))
    assert cloud.audit().disagreements == []


def test_a_console_elsewhere_gets_no_url(cloud: AuditedCloud) -> None:
    server = cloud.wait(
        cloud.admin.compute.create_server(
            name="server",
            flavor_id="gen1.small",
            image_id=cloud.image_id,
            networks=[{"uuid": cloud.network_id}],
            availability_zone=f"nova:{HOST}",
        ),
        "ACTIVE",
    )

    def console() -> Any:
        return cloud.admin.compute.create_console(server, "serial")

    def elsewhere(method: str, _arguments: Any, reply: Any) -> Any:
        if method == "get_console":
            reply["result"]["host"] = "169.254.169.254"
        return reply

    assert console()["url"]
    with lying(cloud.embedded.computes[HOST], elsewhere), pytest.raises(exceptions.HttpException):
        console()
