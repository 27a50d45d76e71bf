"""Chooses the CPUs of a host's NUMA cell to which a server's CPUs are pinned.

Source: Compute admin guide, "CPU topologies", thread policies: ``prefer`` packs siblings if there are any, ``require`` insists
on siblings, ``isolate`` takes one thread of a core and leaves the others idle.
"""

from __future__ import annotations

from causeway.hardware.misfit import Misfit
from causeway.model.numa import InstanceNUMACell, NUMACell

DEDICATED = "free dedicated CPUs in one NUMA cell"


def pin(wanted: InstanceNUMACell, host: NUMACell) -> tuple[dict[str, int], list[int]]:
    """Returns server CPU -> host CPU, and the host's threads that stay idle. Raises Misfit."""
    needs = len(wanted.pcpuset)
    free = set(host.free_pcpus)
    if wanted.cpu_thread_policy == "isolate":
        return _isolated(wanted, host, free)
    cores = [sorted(free & set(core)) for core in host.siblings]
    threaded = {cpu for core in cores for cpu in core}
    if wanted.cpu_thread_policy == "require":
        if not host.siblings:
            raise Misfit("CPUs with thread siblings, as the flavor requires", needs, 0)
        cores = [core for core in cores if len(core) > 1]
        single: list[int] = []
    else:
        single = sorted(free - threaded)
    # Whole cores first, so that siblings stay together and few cores are split.
    cores.sort(key=lambda core: (-len(core), core))
    order = [cpu for core in cores for cpu in core] + single
    if len(order) < needs:
        raise Misfit(DEDICATED, needs, len(order))
    return _pinning(wanted, order[:needs]), []


def _isolated(wanted: InstanceNUMACell, host: NUMACell, free: set[int]) -> tuple[dict[str, int], list[int]]:
    threaded = {cpu for core in host.siblings for cpu in core}
    chosen, idle = [], []
    # All dedicated threads of an isolated core must be free. Threads outside of the dedicated set do not count.
    dedicated = set(host.pcpuset)
    cores = [sorted(dedicated & set(core)) for core in host.siblings] + [[cpu] for cpu in sorted(free - threaded)]
    whole = [core for core in cores if core and set(core) <= free]
    needs = len(wanted.pcpuset)
    if len(whole) < needs:
        raise Misfit("free whole cores in one NUMA cell", needs, len(whole))
    for core in whole[:needs]:
        chosen.append(core[0])
        idle += core[1:]
    return _pinning(wanted, chosen), idle


def _pinning(wanted: InstanceNUMACell, chosen: list[int]) -> dict[str, int]:
    return {str(cpu): host for cpu, host in zip(sorted(wanted.pcpuset), chosen, strict=True)}
