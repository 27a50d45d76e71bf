"""A small storm; ``make storm`` makes the full one."""

from __future__ import annotations

from pathlib import Path

import pytest

from .site import ChildSite
from .storm.__main__ import new_site
from .storm.deeds import DEEDS
from .storm.run import Storm


@pytest.mark.timeout(240)
def test_what_users_were_answered_while_the_cloud_crashed_is_what_is_there(tmp_path: Path) -> None:
    with new_site(tmp_path / "state") as site:
        assert isinstance(site, ChildSite)
        result = Storm(site, servers=8, seconds=20, every=(3.0, 4.0)).run()
    assert result.wrong == {}
    assert result.crashes
    asked = {answer.split(" ")[0] for answer in result.answers}
    # Whether something is under way to be cancelled, or was switched off, is up to chance; nobody is asked for a write.
    assert {deed.name for deed in DEEDS} - {"cancel", "start", "reboot", "write", "evacuate"} <= asked
