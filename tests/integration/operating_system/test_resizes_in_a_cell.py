"""Debian writes files while it is resized inside its cell, and is migrated there while it is off."""

from __future__ import annotations

import pytest

from tests.functional.servers.audited_cloud import AuditedCloud
from tests.integration.operating_system import ways
from tests.integration.operating_system.debian_servers import Debian, Debians
from tests.integration.operating_system.resizes import resized, whole, writing


@pytest.fixture
def debian(cloud: AuditedCloud, debians: Debians) -> Debian:
    return writing(cloud, debians)


def test_files_and_disk_of_debian_are_right_after_each_move_in_a_cell(cloud: AuditedCloud, debian: Debian) -> None:
    assert (whole(debian), debian.host[:5]) == (1, "cell1")

    assert (resized(debian, "first.larger"), debian.host[:5]) == (2, "cell1")
    cloud.confirmed(debian.server)
    assert cloud.audit().is_clean

    cloud.member.compute.stop_server(debian.server.id)
    cloud.wait(debian.server, "SHUTOFF")
    ways.migrated(debian, cloud.other_host(debian.server))
    cloud.confirmed(debian.server)
    cloud.member.compute.start_server(debian.server.id)
    cloud.wait(debian.server, "ACTIVE")
    assert (whole(debian), debian.host[:5]) == (2, "cell1")
    assert cloud.audit().is_clean
