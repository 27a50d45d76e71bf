"""The compute service of a host. It imports nothing of databases and of the API, whose libraries a host has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from causeway import durable
from causeway.clients.vendordata import Vendordata
from causeway.compute.adopting import nova_processes
from causeway.compute.adopting.ownership import Ownership
from causeway.compute.adopting.service import AdoptingService
from causeway.compute.service import ComputeService
from causeway.faults import hooks
from causeway.model.found_host import FoundHypervisor, NovaProcess
from causeway.roles.surroundings import Surroundings
from causeway.virt.driver import Driver


def make_compute(
    around: Surroundings,
    name: str,
    driver: Driver,
    cell_transport: str,
    state_dir: Path,
    disks_dir: Path | None = None,
) -> ComputeService:
    """The compute service of one host. ``disks_dir``: see `ComputeService`."""
    return ComputeService(
        name,
        around.conf,
        driver=hooks.watch_driver(driver, name),
        transport=around.transports.get(cell_transport),
        placement=around.placement,
        images=around.images,
        network=around.network,
        volumes=around.volumes,
        vendordata=Vendordata(around.sessions),
        state_dir=state_dir,
        disks_dir=disks_dir,
    )


def make_adopting_compute(
    around: Surroundings,
    name: str,
    make_driver: Callable[[], Driver],
    cell_transport: str,
    state_dir: Path,
    disks_dir: Path | None = None,
    *,
    look: Callable[[], FoundHypervisor],
    nova_folders: Sequence[Path],
    processes: Callable[[], list[NovaProcess]] = nova_processes.find,
) -> AdoptingService:
    """The service of a host that Nova had, which has a compute service only while the host is Causeway's.

    ``make_driver`` is called for each of these. ``look``: what the hypervisor has, without a driver. ``nova_folders``: where Nova
    looks for the host's identity.
    """
    durable.make_folder(state_dir)
    return AdoptingService(
        name,
        around.transports.get(cell_transport),
        Ownership(state_dir, nova_folders),
        look=look,
        make=lambda: make_compute(around, name, make_driver(), cell_transport, state_dir, disks_dir),
        processes=processes,
    )
