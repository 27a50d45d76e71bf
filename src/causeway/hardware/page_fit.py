"""Chooses the memory of a server's NUMA cell on a cell of the host: ordinary memory, or pages of one size."""

from __future__ import annotations

from causeway.hardware.misfit import Misfit
from causeway.model.numa import MEMPAGES_ANY, MEMPAGES_LARGE, MEMPAGES_SMALL, InstanceNUMACell, NUMACell

_KIB_PER_MIB = 1024


def choose(wanted: InstanceNUMACell, host: NUMACell, ram_ratio: float) -> int | None:
    """Returns the page size in KiB, or None for ordinary memory. Raises Misfit. ``ram_ratio`` counts for ordinary memory only."""
    if wanted.memory > host.memory:
        raise Misfit("MiB of memory in one NUMA cell", wanted.memory, host.memory)
    if wanted.pagesize is None:
        room = int(host.memory * ram_ratio) - host.memory_usage
        if wanted.memory > room:
            raise Misfit("MiB of memory in one NUMA cell", wanted.memory, max(0, room))
        return None
    sizes = sorted(pages.size_kb for pages in host.mempages)
    if wanted.pagesize == MEMPAGES_SMALL:
        sizes = sizes[:1]
    elif wanted.pagesize == MEMPAGES_LARGE:
        sizes = sizes[1:]
    elif wanted.pagesize != MEMPAGES_ANY:
        sizes = [size for size in sizes if size == wanted.pagesize]
    if not sizes:
        raise Misfit(f"memory pages of {_name(wanted.pagesize)}")
    misfit = None
    for size in reversed(sizes):
        if wanted.memory * _KIB_PER_MIB % size:
            misfit = misfit or Misfit(f"memory pages that divide {wanted.memory} MiB")
            continue
        needs = wanted.memory * _KIB_PER_MIB // size
        free = sum(pages.free for pages in host.mempages if pages.size_kb == size)
        if needs <= free:
            return size
        misfit = Misfit(f"free memory pages of {size} KiB in one NUMA cell", needs, free)
    assert misfit is not None
    raise misfit


def _name(pagesize: int) -> str:
    return {MEMPAGES_SMALL: "the smallest size", MEMPAGES_LARGE: "a large size", MEMPAGES_ANY: "any size"}.get(
        pagesize, f"{pagesize} KiB"
    )
