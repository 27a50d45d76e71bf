"""A part of the matrix of faults on hosts of one store. ``make faults FAULTS=--shared-storage`` runs all of it."""

from __future__ import annotations

import pytest

from tests.faults.clouds.site import LocalSite
from tests.faults.moves.flows import FLOWS, Flow
from tests.faults.moves.matrix import points_of, run, sample

# Another number takes other points.
SEED = 1
STEPS = [
    flow for flow in FLOWS if flow.backing in ("image", "disks") and (flow.reach != "host" or flow.spoiled_by is None)
]


@pytest.mark.parametrize("flow", STEPS, ids=lambda flow: flow.name)
def test_a_step_that_fails_once_costs_nothing_in_shared_storage(shared_site: LocalSite, flow: Flow) -> None:
    points = sample({flow: points_of(shared_site, flow)}, 4, SEED)
    bad = [case for case in run(shared_site, "error", points, lambda _case: None) if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))
