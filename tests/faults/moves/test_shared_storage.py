"""Parts of the matrix of faults on hosts of one store, and of one store in each cell.

``make faults FAULTS=--shared-storage`` and ``FAULTS=--storage-per-cell`` run all of it.
"""

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


@pytest.mark.parametrize("flow", [flow for flow in STEPS if flow.reach == "cross"], ids=lambda flow: flow.name)
def test_a_step_that_fails_once_costs_nothing_between_two_stores(apart_site: LocalSite, flow: Flow) -> None:
    points = sample({flow: points_of(apart_site, flow)}, 4, SEED)
    bad = [case for case in run(apart_site, "error", points, lambda _case: None) if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))
