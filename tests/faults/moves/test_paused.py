"""A part of the matrix with two conductors, of which one is paused in the middle of its moves; ``make faults`` runs all."""

from __future__ import annotations

import pytest

from tests.faults.clouds.roles_site import RolesSite, why_not
from tests.faults.clouds.site import LocalSite
from tests.faults.moves.flows import FLOWS, Flow
from tests.faults.moves.matrix import points_of, run, sample

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

# Another number takes other points.
SEED = 3
SAMPLE = [
    ("pause", "cross resize volume"),
    ("long-pause", "cross revert volume"),
    ("longest-pause", "same resize image"),
]


@pytest.mark.long
@pytest.mark.parametrize(("action", "name"), SAMPLE, ids=lambda value: value.replace(" ", "-"))
def test_no_step_takes_effect_twice(roles_site: RolesSite, local_site: LocalSite, action: str, name: str) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    points: dict[Flow, list[str]] = sample({flow: points_of(local_site, flow, action)}, 5, SEED)
    cases = run(roles_site, action, points, lambda _case: None)
    bad = [case for case in cases if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))
