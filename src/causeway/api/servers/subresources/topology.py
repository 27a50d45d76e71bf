"""``GET /servers/{server_id}/topology``. Source: Compute API reference, "Show Server Topology"."""

from __future__ import annotations

from typing import Any

from causeway.api.answers import server_parts
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.servers import loading
from causeway.model.instance import Instance
from causeway.model.numa import InstanceNUMACell

_COLUMNS = frozenset({"numa_topology"})


@handler(answer=server_parts.TOPOLOGY)
def show(request: ApiRequest, server_id: str) -> Response:
    """The server's NUMA cells. Only administrators see which CPUs and cells of the host these are."""
    instance = loading.load(request, server_id, "compute:server:topology:index", columns=_COLUMNS, tags=False).instance
    with_host = request.allows("compute:server:topology:host:index", loading.target_of(instance))
    return Response(200, _topology(instance, with_host=with_host))


def _topology(instance: Instance, *, with_host: bool) -> dict[str, Any]:
    cells = instance.numa_topology.cells if instance.numa_topology is not None else []
    sizes = [cell.pagesize for cell in cells if cell.pagesize is not None]
    return {"nodes": [_node(cell, with_host=with_host) for cell in cells], "pagesize_kb": sizes[0] if sizes else None}


def _node(cell: InstanceNUMACell, *, with_host: bool) -> dict[str, Any]:
    node: dict[str, Any] = {
        "memory_mb": cell.memory,
        "siblings": [],
        "vcpu_set": sorted([*cell.cpuset, *cell.pcpuset]),
    }
    if with_host:
        node["cpu_pinning"] = {str(cpu): host for cpu, host in sorted(cell.cpu_pinning.items())}
        node["host_node"] = cell.id
    return node
