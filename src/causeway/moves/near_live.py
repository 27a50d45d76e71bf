"""The memory of live and near-live migrations, in which a server moves with its guest's memory."""

from __future__ import annotations

from causeway.hardware.port_devices import requests_of
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance
from causeway.model.migration import LIVE_MIGRATION
from causeway.model.states import VmState
from causeway.moves.memory import MoveMemory

# Measured on common hardware: how many MiB of memory a second are saved, sent, fetched and loaded; and the least number of
# seconds that all of this takes.
_MIB_PER_SECOND, _ANYWAY = 80.0, 2.0


def longest_pause(memory_mb: int) -> float:
    """Returns for how many seconds a guest that has used all of its memory stands still: an estimate."""
    return _ANYWAY + memory_mb / _MIB_PER_SECOND


def memory_of(instance: Instance, cell_uuid: str, node: ComputeNode, *, host: str | None) -> MoveMemory:
    """Returns the memory of a new live or near-live migration to another cell.

    ``cell_uuid``, ``node``: where the server is. ``host``: the target; None for any host of another cell.
    """
    return MoveMemory(
        migration_type=LIVE_MIGRATION,
        source_cell=cell_uuid,
        source_host=instance.host or "",
        source_node=node.uuid,
        source_hypervisor=instance.node,
        source_zone=instance.availability_zone,
        old_flavor=instance.flavor,
        new_flavor=instance.flavor,
        old_vm_state=instance.vm_state,
        cross_cell_allowed=True,
        keeps_memory=True,
        # A suspended guest is off anyway.
        may_go_live=instance.vm_state is not VmState.SUSPENDED,
        requested_host=host,
        has_ports=bool(instance.network_info),
        has_port_devices=bool(requests_of(instance)),
    )
