"""A part of the matrix: services die in the middle of requests; ``make faults FAULTS="--action service-killed"`` runs all."""

from __future__ import annotations

import pytest

from tests.faults.clouds.killed_services import ACTION
from tests.faults.clouds.roles_site import RolesSite, why_not
from tests.faults.clouds.site import LocalSite
from tests.faults.moves.flows import FLOWS, Flow
from tests.faults.moves.matrix import points_of, run, sample

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

# Another number takes other points.
SEED = 5
SAMPLE = ["cross resize volume", "cross revert volume", "same confirm image"]
# Placement was killed between two transactions of a write.
HALVES = {"cross resize image": "POST /allocations.half", "same confirm image": "DELETE /allocations/{consumer}.half"}


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLE, ids=lambda value: value.replace(" ", "-"))
def test_a_service_that_dies_in_a_request_costs_nothing(
    roles_site: RolesSite, local_site: LocalSite, name: str
) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    points: dict[Flow, list[str]] = sample({flow: points_of(local_site, flow, ACTION)}, 6, SEED)
    cases = run(roles_site, ACTION, points, lambda _case: None)
    assert any(case.reached for case in cases)
    bad = [case for case in cases if case.outcome not in ("recovered", "not reached")]
    assert not bad, "\n".join(map(str, bad))


@pytest.mark.long
@pytest.mark.parametrize("name", HALVES, ids=lambda value: value.replace(" ", "-"))
def test_a_placement_that_dies_in_the_middle_of_a_write_costs_nothing(roles_site: RolesSite, name: str) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    (case,) = run(roles_site, ACTION, {flow: [f"call.placement {HALVES[name]}"]}, lambda _case: None)
    assert (case.outcome, case.end) == ("recovered", "forward"), str(case)
