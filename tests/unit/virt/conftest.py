"""What the tests of drivers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.virt.libvirt_hypervisor import TestHypervisor


@pytest.fixture
def hypervisor(tmp_path: Path) -> Iterator[TestHypervisor]:
    """libvirt's own hypervisor for tests, which each test has for itself."""
    pytest.importorskip("libvirt")
    from tests.unit.virt.libvirt_hypervisor import TestHypervisor

    opened = TestHypervisor(tmp_path)
    yield opened
    opened.hypervisor.close()
    opened._pool.shutdown()
