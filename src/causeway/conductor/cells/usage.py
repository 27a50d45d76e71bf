"""The usage of a host according to the records of its cell. It agrees with Placement even while servers move.

A moving server uses both of its hosts, the source with its old flavor and the target with the new one, from the preparation of
the target until confirm or revert. Each cell's records show the usage of its own hosts.
"""

from __future__ import annotations

from collections.abc import Iterable

from causeway.model.flavor import Flavor
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance

_MB_PER_GB = 1024


def note_usage(node: ComputeNode, records: Iterable[Instance], cell_uuid: str | None) -> None:
    """Sets the node's used VCPUs, memory and disk. ``records``: the servers on it, and those that move to or from it.

    Without ``cell_uuid``, hosts are distinguished only by their names, which are unique across cells.
    """
    node.vcpus_used = node.memory_mb_used = node.local_gb_used = 0
    for record in records:
        for flavor in flavors_on(record, node.host, cell_uuid):
            node.vcpus_used += flavor.vcpus
            node.memory_mb_used += flavor.memory_mb
            # Bug 1796737: a server without an image of its own has its root disk on a volume.
            root_gb = flavor.root_gb if record.image_ref else 0
            node.local_gb_used += root_gb + flavor.ephemeral_gb + -(-flavor.swap // _MB_PER_GB)


def flavors_on(record: Instance, host: str, cell_uuid: str | None) -> list[Flavor]:
    """Returns the flavors of a server that use resources of a host: none, one, or both if it is resized on the same host."""
    context = record.migration_context
    if context is None or (context.source_host is None and context.dest_host is None):
        return [record.flavor] if record.host == host else []
    found = []
    if context.source_host == host and cell_uuid in (context.source_cell, None):
        found.append(record.old_flavor or record.flavor)
    if context.dest_host == host and cell_uuid in (context.dest_cell, None):
        found.append(record.new_flavor or record.flavor)
    return found
