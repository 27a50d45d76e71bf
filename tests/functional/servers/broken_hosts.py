"""What befalls hosts: a guest and its disks are lost, a host dies, is fenced, and comes back. For simulated hosts.

Tests of moves and the fault matrix call these; `state` is the state directory of one host (``hosts/HOST`` of a cloud's).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.states import PowerState
from causeway.roles.compute import make_compute
from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud

STASHED = "_resize"


def disks_of(state: Path, uuid: str, *, stashed: bool = False) -> Path:
    """The folder of a server's disks on a host, whether it is there or not."""
    return next(state.rglob("instances")) / (f"{uuid}{STASHED}" if stashed else uuid)


def lose_guest(driver: Any, uuid: str) -> None:
    """A host was reinstalled: its hypervisor knows no guest, and the disks are gone; stashed ones too."""
    driver.destroy(uuid, [], [], destroy_disks=True)
    driver.delete_stashed_disks(uuid)


def lose_disks(state: Path, uuid: str, *, stashed: bool = False) -> None:
    """A medium failed: the disks are gone, the hypervisor still knows the guest."""
    shutil.rmtree(disks_of(state, uuid, stashed=stashed), ignore_errors=True)


def tear_disk(state: Path, uuid: str, *, stashed: bool = False, name: str = "disk") -> None:
    """A power cut: a disk has its name and its beginning, and no more."""
    disk = disks_of(state, uuid, stashed=stashed) / name
    disk.write_bytes(disk.read_bytes()[:20])


def force_down(embedded: EmbeddedCloud, host: str, down: bool = True) -> None:
    """The operator's word that a host is fenced, or that it is not any more: ``compute service set --down HOST``."""
    database = embedded.cells.database(_cell_of(embedded, host).uuid)
    for service in hosts.list_services(database, host=host, binary="nova-compute"):
        hosts.update_service(database, service.uuid, forced_down=down)


def stop(embedded: EmbeddedCloud, host: str) -> None:
    """A host loses its power: its compute is gone, its guests are off, and it is long since it reported."""
    embedded.computes[host].stop()
    driver = embedded.computes[host].host.driver
    for uuid, power_state in driver.list_guests().items():
        if power_state is not PowerState.SHUTDOWN:
            driver.power_off(uuid, 0)
    database = embedded.cells.database(_cell_of(embedded, host).uuid)
    for service in hosts.list_services(database, host=host, binary="nova-compute"):
        hosts.update_service(database, service.uuid, last_seen_up=None)


def start(embedded: EmbeddedCloud, host: str) -> None:
    """The host is switched on again, with the disks that it had."""
    service = make_compute(
        embedded.around_of_hosts,
        host,
        embedded.hosts.driver(host),
        _cell_of(embedded, host).transport_url,
        embedded.state.host(host),
    )
    embedded.computes[host] = service
    service.start()


def state_of(cloud: Cloud, host: str) -> Path:
    found: Path = cloud.parts.state.path / "hosts" / host
    return found


def _cell_of(embedded: EmbeddedCloud, host: str) -> Any:
    return next(cell for cell in embedded.cells.mappings() if cell.name == host.partition("-")[0])
