"""Fitting servers on hosts: nothing is given away twice, and what fits is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.hardware.fit import Limits, fit, hold, holding
from causeway.hardware.misfit import Misfit
from causeway.model.numa import (
    MEMPAGES_ANY,
    MEMPAGES_LARGE,
    MEMPAGES_SMALL,
    InstanceNUMACell,
    InstanceNUMATopology,
    NUMACell,
    NUMAPagesTopology,
    NUMATopology,
)

LIMITS = Limits(4.0, 1.0)


def host(cells: int = 2, pinned: int = 4, shared: int = 2, threads: int = 1, huge: int = 8) -> NUMATopology:
    """Cells of ``pinned`` dedicated and ``shared`` shared CPUs, 1 GiB, ``huge`` pages of 2 MiB."""
    made = []
    for number in range(cells):
        first = number * 100
        dedicated = list(range(first, first + pinned))
        cores = [dedicated[at : at + threads] for at in range(0, pinned, threads)]
        made.append(
            NUMACell(
                id=number,
                cpuset=list(range(first + 50, first + 50 + shared)),
                pcpuset=dedicated,
                memory=1024,
                mempages=[NUMAPagesTopology(4, 1000), NUMAPagesTopology(2048, huge)],
                siblings=cores if threads > 1 else [],
            )
        )
    return NUMATopology(made)


def server(
    *cells: int, thread_policy: str | None = None, pagesize: int | None = None, memory: int = 4
) -> InstanceNUMATopology:
    """A server with so many pinned CPUs in each of its cells."""
    made, first = [], 0
    for number, count in enumerate(cells):
        cpus = list(range(first, first + count))
        made.append(InstanceNUMACell(number, [], cpus, memory, pagesize, "dedicated", thread_policy))
        first += count
    return InstanceNUMATopology(made)


SERVERS = st.builds(
    lambda cells, policy, pagesize, memory: server(*cells, thread_policy=policy, pagesize=pagesize, memory=memory),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from([None, "prefer", "isolate", "require"]),
    st.sampled_from([None, MEMPAGES_SMALL, MEMPAGES_LARGE, MEMPAGES_ANY, 2048]),
    st.sampled_from([2, 4, 3, 700]),
)


@given(
    st.lists(SERVERS, max_size=8),
    st.builds(host, cells=st.integers(1, 3), pinned=st.sampled_from([2, 4, 8]), threads=st.sampled_from([1, 2])),
)
def test_nothing_is_given_away_twice(servers: list[InstanceNUMATopology], there: NUMATopology) -> None:
    given_away: set[int] = set()
    claims: list[InstanceNUMATopology] = []
    for wanted in servers:
        try:
            claimed = fit(wanted, holding(there, claims), LIMITS)
        except Misfit:
            continue
        claims.append(claimed)
        assert len({cell.id for cell in claimed.cells}) == len(claimed.cells)
        for cell, asked in zip(claimed.cells, wanted.cells, strict=True):
            assert sorted(cell.cpu_pinning) == asked.pcpuset
            assert len(set(cell.cpu_pinning.values())) == len(asked.pcpuset)
            assert cell.held_cpus <= set(there.cells[cell.id].pcpuset)
            assert not cell.held_cpus & given_away
            given_away |= cell.held_cpus
    for held in holding(there, claims).cells:
        assert held.memory_usage <= held.memory
        assert all(pages.used <= pages.total for pages in held.mempages)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_what_fits_is_found(held: list[int], wanted: list[int]) -> None:
    there = host(cells=len(held))
    for cell, taken in zip(there.cells, held, strict=True):
        cell.pinned_cpus = cell.pcpuset[:taken]
    free = sorted((4 - taken for taken in held), reverse=True)
    possible = len(wanted) <= len(free) and all(
        needs <= room for needs, room in zip(sorted(wanted, reverse=True), free, strict=False)
    )
    try:
        fit(server(*wanted), there, LIMITS)
        found = True
    except Misfit:
        found = False
    assert found is possible


def test_siblings_stay_together_and_an_isolated_guest_has_its_cores_for_itself() -> None:
    there = host(cells=1, pinned=8, threads=2)
    hold(there, fit(server(1), there, LIMITS))
    packed = fit(server(2), there, LIMITS).cells[0]
    assert set(packed.cpu_pinning.values()) == {2, 3}
    hold(there, InstanceNUMATopology([packed]))
    isolated = fit(server(2, thread_policy="isolate"), there, LIMITS).cells[0]
    assert set(isolated.cpu_pinning.values()) == {4, 6} and isolated.held_cpus == {4, 5, 6, 7}
    hold(there, InstanceNUMATopology([isolated]))
    with pytest.raises(Misfit, match="needs 2, 1 free"):
        fit(server(2), there, LIMITS)
    assert fit(server(1), there, LIMITS).cells[0].cpu_pinning == {0: 1}


def test_required_siblings_are_thread_siblings() -> None:
    with pytest.raises(Misfit, match="thread siblings"):
        fit(server(2, thread_policy="require"), host(), LIMITS)
    found = fit(server(4, thread_policy="require"), host(pinned=4, threads=2), LIMITS)
    assert set(found.cells[0].cpu_pinning.values()) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("asked", "memory", "chosen"),
    [(MEMPAGES_SMALL, 2, 4), (MEMPAGES_LARGE, 2, 2048), (MEMPAGES_ANY, 2, 2048), (MEMPAGES_ANY, 3, 4), (2048, 4, 2048)],
)
def test_page_sizes_are_chosen_as_asked(asked: int, memory: int, chosen: int) -> None:
    found = fit(server(1, pagesize=asked, memory=memory), host(cells=1), LIMITS)
    assert found.cells[0].pagesize == chosen


@pytest.mark.parametrize(
    ("asked", "memory", "reason"),
    [
        (MEMPAGES_LARGE, 3, "divide 3 MiB"),
        (1048576, 1024, "memory pages of 1048576 KiB"),
        (2048, 18, r"2048 KiB in one NUMA cell \(needs 9, 8 free\)"),
        (None, 2000, r"MiB of memory in one NUMA cell \(needs 2000, 1024 free\)"),
    ],
)
def test_memory_that_is_not_there(asked: int | None, memory: int, reason: str) -> None:
    with pytest.raises(Misfit, match=reason):
        fit(server(1, pagesize=asked, memory=memory), host(cells=1), LIMITS)


def test_shared_cpus_may_be_given_away_several_times_but_not_to_one_guest() -> None:
    there = host(cells=1, shared=2)
    one = InstanceNUMATopology([InstanceNUMACell(0, [0, 1], [], 4)])
    for _guest in range(4):
        hold(there, fit(one, there, LIMITS))
    with pytest.raises(Misfit, match="free shared CPUs"):
        fit(one, there, LIMITS)
    with pytest.raises(Misfit, match="shared CPUs in one NUMA cell"):
        fit(InstanceNUMATopology([InstanceNUMACell(0, [0, 1, 2], [], 4)]), host(cells=1), LIMITS)
