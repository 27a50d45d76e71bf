"""Assigns a server's NUMA cells to those of a host.

Each of the server's cells gets a different cell of the host. All assignments are tried, because there are few cells.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from causeway.hardware import cpu_fit, page_fit
from causeway.hardware.misfit import Misfit
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology, NUMACell, NUMATopology

# At most so many single placements are tried. Real hosts need far fewer.
MOST_ATTEMPTS = 50_000


@dataclass(frozen=True)
class Limits:
    """The allocation ratios of shared CPUs and of ordinary memory."""

    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0


Accept = Callable[[InstanceNUMATopology], None]


def fit(
    wanted: InstanceNUMATopology, host: NUMATopology | None, limits: Limits, accept: Accept | None = None
) -> InstanceNUMATopology:
    """Returns the server's topology as it would be on the host. Raises Misfit with the reason of the attempt that got furthest.

    ``accept`` is called with each complete assignment, and raises Misfit to refuse it.
    """
    if host is None or not host.cells:
        raise Misfit("a NUMA topology")
    if len(wanted.cells) > len(host.cells):
        raise Misfit("NUMA cells", len(wanted.cells), len(host.cells))
    furthest: tuple[int, Misfit] | None = None
    attempts = 0

    def place(done: list[InstanceNUMACell]) -> Iterator[InstanceNUMATopology]:
        nonlocal furthest, attempts
        if len(done) == len(wanted.cells):
            yield InstanceNUMATopology(done)
            return
        used = {cell.id for cell in done}
        for cell in host.cells:
            attempts += 1
            if cell.id in used or attempts > MOST_ATTEMPTS:
                continue
            try:
                fitted = fit_cell(wanted.cells[len(done)], cell, limits)
            except Misfit as misfit:
                if furthest is None or len(done) >= furthest[0]:
                    furthest = _better(furthest, len(done), misfit)
                continue
            yield from place([*done, fitted])

    for topology in place([]):
        try:
            if accept is not None:
                accept(topology)
            return topology
        except Misfit as misfit:
            furthest = (len(wanted.cells), misfit)
    assert furthest is not None
    raise furthest[1]


def _better(known: tuple[int, Misfit] | None, depth: int, misfit: Misfit) -> tuple[int, Misfit]:
    """Of two reasons at the same depth, returns the one with more free: the best cell still had too little."""
    if known is not None and known[0] == depth and (known[1].free or 0) >= (misfit.free or 0):
        return known
    return depth, misfit


def fit_cell(wanted: InstanceNUMACell, host: NUMACell, limits: Limits) -> InstanceNUMACell:
    """Returns the server's cell as it would be on this cell of the host. Raises Misfit."""
    if wanted.cpuset:
        if len(wanted.cpuset) > len(host.cpuset):
            raise Misfit("shared CPUs in one NUMA cell", len(wanted.cpuset), len(host.cpuset))
        room = int(len(host.cpuset) * limits.cpu_ratio) - host.cpu_usage
        if len(wanted.cpuset) > room:
            raise Misfit("free shared CPUs in one NUMA cell", len(wanted.cpuset), max(0, room))
    pinning, reserved = cpu_fit.pin(wanted, host) if wanted.pcpuset else (None, [])
    pagesize = page_fit.choose(wanted, host, limits.ram_ratio)
    return dataclasses.replace(
        wanted,
        id=host.id,
        pagesize=pagesize,
        cpu_pinning_raw=pinning,
        cpuset_reserved=reserved,
        shared_on=list(host.cpuset) if wanted.cpuset else [],
    )


def hold(host: NUMATopology, claimed: InstanceNUMATopology) -> None:
    """Adds what a server holds to the usage of the host's cells."""
    cells = {cell.id: cell for cell in host.cells}
    for claim in claimed.cells:
        cell = cells.get(claim.id)
        if cell is None:
            # The host has fewer cells than it had when the server came.
            continue
        cell.cpu_usage += len(claim.cpuset)
        cell.memory_usage += claim.memory
        cell.pinned_cpus = sorted({*cell.pinned_cpus, *claim.held_cpus})
        for pages in cell.mempages:
            if pages.size_kb == claim.pagesize:
                pages.used += claim.memory * 1024 // pages.size_kb


def holding(host: NUMATopology, claims: list[InstanceNUMATopology]) -> NUMATopology:
    """Returns a copy of the host's topology with the usage of these servers."""
    counted = copy.deepcopy(host)
    for claimed in claims:
        hold(counted, claimed)
    return counted
