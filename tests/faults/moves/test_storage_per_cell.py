"""A part of the matrix of faults on hosts with a store in each cell. ``make faults FAULTS=--storage-per-cell`` runs all of it."""

from __future__ import annotations

import pytest

from tests.faults.clouds.site import LocalSite
from tests.faults.moves.flows import Flow
from tests.faults.moves.matrix import points_of, run, sample
from tests.faults.moves.test_shared_storage import SEED, STEPS


@pytest.mark.parametrize("flow", [flow for flow in STEPS if flow.reach == "cross"], ids=lambda flow: flow.name)
def test_a_step_that_fails_once_costs_nothing_between_two_stores(apart_site: LocalSite, flow: Flow) -> None:
    points = sample({flow: points_of(apart_site, flow)}, 4, SEED)
    bad = [case for case in run(apart_site, "error", points, lambda _case: None) if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))
