"""A small storm; ``make storm`` makes the full one."""

from __future__ import annotations

import pytest

from .site import ChildSite
from .storm import Storm


@pytest.mark.timeout(240)
def test_servers_that_move_while_the_cloud_crashes_are_all_there_afterwards(child_site: ChildSite) -> None:
    result = Storm(child_site, moves=40, at_once=10, every=(2.0, 3.0)).run()
    assert (result.lost, result.leaked) == ({}, {})
    assert result.moves >= 40
    assert result.crashes
