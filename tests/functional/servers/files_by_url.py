"""What the hosts of a cloud that runs elsewhere keep in files: simulated guests and claims, read and not changed."""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
from oslo_config.cfg import ConfigOpts

from causeway.compute.host.claims import Claims
from causeway.hardware import host as hardware_of
from causeway.hardware.fit import Limits
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.simulated.guest import Guest
from causeway.virt.simulated.hardware import SimulatedHardware
from causeway.virt.simulated.host_files import HostFiles

DOUBLE_START = re.compile(r"Guest (\S+) is started on \S+ while another host runs it")


def claims_in(state_dir: Path, driver: SimulatedDriver, conf: ConfigOpts) -> Claims:
    """The claims of a host whose compute is in another process. ``conf``: its options."""
    hardware = driver.host_hardware()
    topology = hardware_of.for_guests(
        hardware.cells, dedicated=conf.compute.cpu_dedicated_set, shared=conf.compute.cpu_shared_set
    )
    devices = hardware_of.devices_for_guests(hardware.pci_devices, hardware_of.device_specs(conf.pci.device_spec))
    with tempfile.TemporaryDirectory() as copied:
        # Whoever loads claims tidies the folder up, which is the compute's.
        shutil.copytree(state_dir / "claims", copied, dirs_exist_ok=True)
        claims = Claims(Path(copied), driver.hostname, limits=Limits(1.0, 1.0))
        claims.load(topology if topology.cells else None, devices)
    return claims


class _FilesOfAnotherProcess(HostFiles):
    @property
    def guests(self) -> dict[str, Guest]:
        found = {}
        for path in self._guests_dir.glob("*.json"):
            # It may go at any moment.
            with suppress(FileNotFoundError):
                found[path.stem] = msgspec.json.decode(path.read_bytes(), type=Guest)
        return found

    @guests.setter
    def guests(self, _none: dict[str, Guest]) -> None:
        pass


class GuestFiles(SimulatedDriver):
    """What a simulated hypervisor of another process keeps, read anew each time; nothing is done to its guests."""

    def __init__(self, host: str, state_dir: Path, log: Path, hardware: SimulatedHardware) -> None:
        self._log = log
        super().__init__(host, state_dir, hardware=hardware, peers_dir=state_dir.parent)
        self.files = _FilesOfAnotherProcess(host, state_dir)

    @property
    def double_starts(self) -> list[str]:
        return DOUBLE_START.findall(self._log.read_text(errors="replace"))

    @double_starts.setter
    def double_starts(self, _none: list[str]) -> None:
        pass
