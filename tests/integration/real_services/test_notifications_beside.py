"""Notifications of a move beside the real services, and what the processes of that deployment know of databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.processes.consumer import check_move, consumer, secrets_of
from tests.functional.processes.deployment import CONDUCTORS
from tests.integration.real_services.conftest import Cloud
from tests.integration.real_services.test_main_job import moved

pytestmark = pytest.mark.timeout(600)


def test_a_consumer_of_notifications_hears_of_a_move(cloud: Cloud, tmp_path: Path) -> None:
    with consumer(f"{cloud.rabbit}/cloud", tmp_path / "heard") as billing:
        server = cloud.boot()
        source = moved(cloud, server)
        cloud.settle()
        cloud.member.compute.confirm_server_resize(server.id)
        target = cloud.wait(server, "ACTIVE").compute_host
        billing.wait_for(server, "instance.resize_confirm.end")
        check_move(billing.heard(server, ""), source, target, CONDUCTORS)
        assert {secret for secret in secrets_of(cloud) if secret in billing.text} == set()


def test_computes_have_no_database_in_their_configuration(cloud: Cloud) -> None:
    """Conductors of cells have that of their cell and no other."""
    for host in cloud.hosts:
        reported = "".join(path.read_text() for path in cloud.files_of(host))
        assert "database]" not in reported and "mysql" not in reported and "postgresql" not in reported
    for name, cell in cloud.cell_conductors.items():
        reported = "".join(path.read_text() for path in cloud.files_of(name))
        (connection,) = (line for line in reported.splitlines() if line.startswith("connection"))
        assert "[api_database]" not in reported and cell in connection
