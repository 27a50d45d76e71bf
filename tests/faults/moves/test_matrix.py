"""A part of the matrix of faults; ``make faults`` runs all of it. See `matrix`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causeway.devcloud.switches import Backend
from tests.faults.clouds.site import ChildSite, LocalSite, Site
from tests.faults.moves.flows import FLOWS, Flow
from tests.faults.moves.matrix import points_of, run, sample

# Another number takes other points.
SEED = 1


def _run(site: Site, action: str, flows: list[Flow], count: int, paths: LocalSite) -> None:
    points = sample({flow: points_of(paths, flow) for flow in flows}, count, SEED)
    bad = [case for case in run(site, action, points, lambda _case: None) if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))


# What is rolled back on one host takes the way of any other in its cell.
STEPS = [flow for flow in FLOWS if flow.reach != "host" or flow.spoiled_by is None]


@pytest.mark.parametrize("flow", STEPS, ids=lambda flow: flow.name)
def test_a_step_that_fails_once_costs_nothing(local_site: LocalSite, flow: Flow) -> None:
    _run(local_site, "error", [flow], 3, local_site)


@pytest.fixture
def on_ovn(local_site: LocalSite) -> Iterator[LocalSite]:
    """Its ports are wired as OVN does it."""
    devcloud = local_site.cloud.devcloud
    devcloud.backends = dict.fromkeys(local_site.cloud.computes, Backend.OVN)
    yield local_site
    devcloud.backends = {}


@pytest.mark.parametrize("flow", [flow for flow in STEPS if flow.backing == "image"], ids=lambda flow: flow.name)
def test_a_step_that_fails_once_costs_nothing_on_ovn(on_ovn: LocalSite, flow: Flow) -> None:
    _run(on_ovn, "error", [flow], 3, on_ovn)


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("operation", "backing"), [("resize", "volume"), ("resize", "image"), ("confirm", "volume"), ("revert", "volume")]
)
def test_a_crash_costs_nothing(child_site: ChildSite, local_site: LocalSite, operation: str, backing: str) -> None:
    flows = [flow for flow in FLOWS if (flow.operation, flow.reach, flow.backing) == (operation, "cross", backing)]
    _run(child_site, "crash", flows, 6, local_site)


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("operation", ["resize", "confirm", "revert"])
def test_a_conductor_that_hangs_costs_nothing(local_site: LocalSite, operation: str) -> None:
    flows = [flow for flow in FLOWS if (flow.operation, flow.reach, flow.backing) == (operation, "cross", "volume")]
    _run(local_site, "hang", flows, 5, local_site)
