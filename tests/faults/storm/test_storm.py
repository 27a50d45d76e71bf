"""A small storm; ``make storm`` makes the full one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.clouds.site import ChildSite
from tests.faults.storm.__main__ import new_site
from tests.faults.storm.deeds import DEEDS
from tests.faults.storm.run import Storm

# Whether something is under way to be cancelled, or a server is on a host that dies, or in ERROR, is up to chance.
CHANCE = {"cancel", "delete", "throw away", "evacuate", "start", "reboot"}


@pytest.mark.long
@pytest.mark.timeout(240)
def test_what_users_were_answered_while_the_cloud_crashed_is_what_is_there(tmp_path: Path) -> None:
    with new_site(tmp_path / "state") as site:
        assert isinstance(site, ChildSite)
        wanted = {deed.name for deed in DEEDS} - CHANCE
        # Hosts die in `make storm`: that takes longer.
        storm = Storm(site, servers=6, seconds=12, every=(4.0, 5.0), wanted=wanted, hosts_die=False)
        result = storm.run()
    assert result.wrong == {}
    assert result.crashes
    assert not [name for name in wanted if not storm.done[name]]
