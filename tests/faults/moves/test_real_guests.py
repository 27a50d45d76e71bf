"""A part of the matrix on libvirt: everything but QEMU gets SIGKILL in the middle of moves, and is started again; hypervisors are
killed, and networks are cut.

``make faults FAULTS="--driver libvirt"`` runs all of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.virt.lab.hosts import missing
from tests.faults.clouds.libvirt_site import LibvirtSite
from tests.faults.moves.flows import FLOWS
from tests.faults.moves.matrix import run
from tests.faults.moves.real_accidents import JOURNEYS, accident_site, look_at

REASON = missing()
pytestmark = [pytest.mark.libvirt, pytest.mark.timeout(300), pytest.mark.skipif(REASON is not None, reason=str(REASON))]

SAMPLE = {
    "cross resize image": [
        "compute.prep_snapshot_based_resize_at_source.in",
        "resize.ShowTarget.do.before",
    ],
    "cross revert volume": ["compute.restore_at_source.in"],
}


def test_real_guests_survive_the_death_of_everything_else(tmp_path: Path) -> None:
    with LibvirtSite(tmp_path / "state") as site:
        points = {flow: SAMPLE[flow.name] for flow in FLOWS if flow.name in SAMPLE}
        cases = run(site, "crash", points, lambda _case: None)
    bad = [case for case in cases if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))


ACCIDENTS = (
    ("warm", "warm.part.out", "source QEMU"),
    ("live across cells", "live.transfer.in", "network"),
    ("near-live", "near_live_migration.SwitchInstanceMapping.do.before", "target QEMU"),
)


@pytest.mark.timeout(600)
def test_real_guests_survive_what_kills_hypervisors_and_networks(tmp_path: Path) -> None:
    journeys = {journey.name: journey for journey in JOURNEYS}
    with accident_site(tmp_path / "state") as site:
        cases = [look_at(site, journeys[name], point, accident) for name, point, accident in ACCIDENTS]
    bad = [case for case in cases if not case.is_well]
    assert not bad, "\n".join(map(str, bad))
