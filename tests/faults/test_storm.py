"""A small storm; ``make storm`` makes the full one."""

from __future__ import annotations

import pytest

from .site import ChildSite
from .storm import Storm


@pytest.mark.timeout(240)
def test_what_users_were_answered_while_the_cloud_crashed_is_what_is_there(child_site: ChildSite) -> None:
    storm = Storm(child_site, moves=25, at_once=8, every=(2.0, 3.0), seconds=60)
    result = storm.run()
    assert (result.lost, result.leaked) == ({}, {})
    assert result.moves >= 10
    assert result.crashes
    assert result.answers["metadata accepted"] and result.answers["resize accepted"]
