"""NUMATopologyFilter and PciPassthroughFilter.

What is in use is what the host itself reported: its servers, the targets of moves in progress, and the sources of those that
wait for confirm or revert. The host decides when it claims; these filters avoid attempts that would fail.
"""

from __future__ import annotations

import copy

from causeway.hardware import pci_fit
from causeway.hardware.fit import Limits, fit
from causeway.hardware.misfit import Misfit
from causeway.model.numa import InstanceNUMATopology
from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class NUMATopologyFilter(HostFilter):
    """NUMA cells, pinned CPUs and huge pages of the server fit on the host, near the PCI devices that it asks for."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        wanted = request.spec.numa_topology
        if wanted is None:
            return None
        try:
            fitted(host, request)
        except Misfit as misfit:
            return _refusal(misfit)
        return None


class PciPassthroughFilter(HostFilter):
    """The host has the PCI devices that the server asks for."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        wanted = request.spec.pci_requests
        if not wanted:
            return None
        try:
            pci_fit.take_from_pools(wanted, copy.deepcopy(host.pci_stats), None)
        except Misfit as misfit:
            return _refusal(misfit)
        return None


def fitted(host: HostState, request: Request) -> InstanceNUMATopology | None:
    """Returns the NUMA cells and devices of the host that the server would get. Raises Misfit if it does not fit."""
    spec, node = request.spec, host.record.node

    def near(topology: InstanceNUMATopology) -> None:
        cells = {cell.id for cell in topology.cells}
        pci_fit.take_from_pools(spec.pci_requests, copy.deepcopy(host.pci_stats), cells)

    if spec.numa_topology is None:
        return None
    limits = Limits(node.cpu_allocation_ratio, node.ram_allocation_ratio)
    return fit(spec.numa_topology, host.numa_topology, limits, near if spec.pci_requests else None)


def _refusal(misfit: Misfit) -> Refusal:
    if misfit.needs is None:
        return Refusal(f"has no {misfit.what}", f"have no {misfit.what}")
    return Refusal(f"has too few {misfit.what}", f"have too few {misfit.what}", needs=misfit.needs, free=misfit.free)
