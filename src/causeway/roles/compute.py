"""The compute service of a host. It imports nothing of databases and of the API, whose libraries a host has not."""

from __future__ import annotations

from pathlib import Path

from causeway.clients.vendordata import Vendordata
from causeway.compute.service import ComputeService
from causeway.faults import hooks
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
