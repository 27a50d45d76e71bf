"""Whether a server's disks are in storage that its source and its target both reach. Then none of their bytes travel."""

from __future__ import annotations

from causeway import errors
from causeway.model.block_device import local_disk_names
from causeway.model.host import STORAGE
from causeway.model.shared_disk import SharedDisk
from causeway.moves.dead_hosts import answering, at_source
from causeway.moves.move_run import Run
from causeway.store.cell import hosts
from causeway.virt.driver import ROOT_DISK


def shared_with(run: Run, host: str) -> dict[str, SharedDisk]:
    """Returns the disks that the source and ``host`` share, by name; none unless they share all disks whose content moves.

    What the hosts report is only a reason to ask: the target then has to show that it sees these disks.
    """
    memory = run.memory
    if memory.source_storage is None or not _names(run):
        return {}
    node = next(iter(hosts.list_nodes(run.target_database, host=host)), None)
    if node is None or node.capabilities.get(STORAGE) != memory.source_storage:
        return {}
    with answering(run, at_source):
        offered = run.source_computes.shared_disks(run.context, memory.source_host, instance=run.source_instance())
    shared = {name: disk for name, disk in offered.items() if disk.store == memory.source_storage}
    return shared if set(_names(run)) <= shared.keys() else {}


def note_handed_over(run: Run, shared: dict[str, SharedDisk]) -> None:
    """Notes the disks as the source has put them aside. Raises DiskTransferFailed if it has not put all of them aside."""
    if missing := run.memory.shared.keys() - shared.keys():
        raise errors.DiskTransferFailed(
            f"The source did not hand over all disks of server {run.uuid}.", details=f"not handed over: {missing}"
        )
    run.memory.shared = {name: shared[name] for name in run.memory.shared}


def _names(run: Run) -> list[str]:
    """Returns the names of all disks whose content moves."""
    memory = run.memory
    names = [] if memory.volume_backed else [ROOT_DISK]
    return names + [
        name for name, device in local_disk_names(memory.local_devices) if device.is_ephemeral or memory.keeps_memory
    ]
