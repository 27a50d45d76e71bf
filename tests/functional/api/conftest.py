"""What tests of the API share: a running server, and the real Placement in this process for those that look into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.clients.placement import PlacementClient
from causeway.model.instance import Instance


@pytest.fixture
def real_placement(cloud: Any, tmp_path: Path) -> Iterator[PlacementClient]:
    """Placement instead of the recorder; hosts made by ``cloud.host`` have to be made known with ``ensure_provider``."""
    from causeway.embedded.placement.local import local_placement

    placement = local_placement(tmp_path / "placement.sqlite")
    cloud.services.placement = placement.client()
    yield cloud.services.placement
    placement.close()


@pytest.fixture
def server(cloud: Any) -> Instance:
    """A running server on host1."""
    cloud.host("host1")
    return cloud.server(host="host1", node="host1")
