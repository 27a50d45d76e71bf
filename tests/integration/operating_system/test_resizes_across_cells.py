"""Debian writes files while it is resized to the other cell; it comes back by a revert, and goes again."""

from __future__ import annotations

import pytest

from tests.functional.servers.audited_cloud import AuditedCloud
from tests.integration.operating_system.debian_servers import Debian, Debians
from tests.integration.operating_system.resizes import resized, whole, writing


@pytest.fixture
def debian(cloud: AuditedCloud, debians: Debians) -> Debian:
    return writing(cloud, debians)


def test_files_and_disk_of_debian_are_right_after_each_move_across_cells(cloud: AuditedCloud, debian: Debian) -> None:
    assert (whole(debian), debian.host[:5]) == (1, "cell1")

    assert (resized(debian, "second.larger"), debian.host[:5]) == (2, "cell2")
    cloud.reverted(debian.server)
    assert (whole(debian), debian.host[:5]) == (1, "cell1")
    assert cloud.audit().is_clean

    assert (resized(debian, "second.largest"), debian.host[:5]) == (3, "cell2")
    cloud.confirmed(debian.server)
    assert (whole(debian), debian.host[:5]) == (3, "cell2")
    assert cloud.audit().is_clean
