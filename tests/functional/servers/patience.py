"""How long tests of whole clouds wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.functional.servers.deployed_cloud import DeployedCloud

PATIENCE, PATIENCE_BY_URL = 30.0, 120.0


def until(look: Callable[[], Any], good: Callable[[Any], bool], what: str) -> Any:
    """What ``look`` sees when it is good. The API has nothing to wait on, so this asks again and again."""
    end = time.monotonic() + (PATIENCE_BY_URL if DeployedCloud.in_use else PATIENCE)
    while True:
        seen = look()
        if good(seen):
            return seen
        assert time.monotonic() < end, f"waited in vain for {what}; last seen: {seen}"
        time.sleep(0.1 if DeployedCloud.in_use else 0.01)
