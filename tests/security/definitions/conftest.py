"""The lab of `tests.integration.libvirt`, for the tests here that have real guests."""

from __future__ import annotations

import pytest

from causeway.virt.lab.hosts import missing
from tests.integration.libvirt.conftest import (
    cloud,
    endpoints,
    guest_image,
    lab,
    lab_dir,
    network,
    started_drivers,
)

__all__ = ["cloud", "endpoints", "guest_image", "lab", "lab_dir", "network", "started_drivers"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if item.get_closest_marker("libvirt") and reason and __package__ in item.nodeid.replace("/", "."):
            item.add_marker(pytest.mark.skip(reason=reason))
