"""Hosts that are dead for good, and copies that are gone; ``make faults`` runs all of them. See `accidents`."""

from __future__ import annotations

import pytest

from tests.faults.clouds.site import LocalSite
from tests.faults.moves import accidents
from tests.faults.moves.flows import FLOWS
from tests.faults.moves.matrix import run

LOSSES = [
    ("target-lost", "cross confirm image", "the guest and its disks"),
    ("target-lost", "same confirm image", "torn disk of a guest that is off"),
    ("target-lost", "cross confirm volume", "the guest"),
    ("source-lost", "cross revert disks", "an ephemeral disk"),
    ("source-lost", "same revert image", "the stashed disks"),
]


DEATHS = [
    ("dead-target", "cross revert image", "before it is asked for", "forward"),
    ("dead-target", "cross resize image", "resize.HandOver.do.after", "rolled back"),
    ("dead-source", "cross resize image", "resize.FinishAtTarget.do.before", "rolled back"),
    ("dead-source", "cross resize volume", "resize.FinishAtTarget.do.before", "forward"),
]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("action", "name", "point", "end"), DEATHS, ids=lambda value: value.replace(" ", "-"))
def test_nothing_waits_for_a_host_that_is_forced_down(
    local_site: LocalSite, action: str, name: str, point: str, end: str
) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    (case,) = run(local_site, action, {flow: [point]}, lambda _case: None)
    assert (case.outcome, case.complaints, case.end) == ("recovered", [], end)


@pytest.mark.parametrize(("action", "name", "point"), LOSSES, ids=lambda value: value.replace(" ", "-"))
def test_what_may_be_the_last_copy_is_not_destroyed(local_site: LocalSite, action: str, name: str, point: str) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    assert point in accidents.points_of(flow, action)
    (case,) = run(local_site, action, {flow: [point]}, lambda _case: None)
    assert (case.outcome, case.complaints) == ("recovered", [])
    assert case.end != "forward"
