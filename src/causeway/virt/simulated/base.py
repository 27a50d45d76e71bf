"""What all parts of `SimulatedDriver` use: the files of the host, and looks at its guests."""

from __future__ import annotations

import logging
from abc import ABC
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.hardware.firmware import of_instance
from causeway.model import tpm_secrets
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt.driver import Driver
from causeway.virt.simulated import activity
from causeway.virt.simulated.guest import Guest
from causeway.virt.simulated.habits import Habits
from causeway.virt.simulated.hardware import SimulatedHardware
from causeway.virt.simulated.host_files import HostFiles, running_in
from causeway.virt.simulated.link import Link
from causeway.virt.simulated.shared_store import DiskMaker

LOG = logging.getLogger(__name__)


class SimulatedBase(Driver, ABC):
    """Attributes are set by `SimulatedDriver`."""

    hostname: str
    files: HostFiles
    link: Link
    habits: Habits
    #: uuids of guests that were started here while another host ran them: tests check that there are none
    double_starts: list[str]
    #: volume -> its passphrase, while the hypervisor has it
    volume_keys: dict[str, str]
    #: server -> the passphrase of the state of its TPM
    tpm_keys: dict[str, str]
    _hardware: SimulatedHardware
    _state_dir: Path
    _peers_dir: Path | None
    _disk_maker: DiskMaker

    def running_anywhere(self, uuid: str) -> list[str]:
        """The names of the hosts that run a guest, among those that keep their state in ``peers_dir``."""
        return running_in(self._peers_dir or self._state_dir.parent, uuid)

    def _running(self, uuid: str) -> Guest:
        """Raises `GuestFailed` unless the guest runs."""
        guest = self.files.guests.get(uuid)
        if guest is None or guest.power_state is not PowerState.RUNNING:
            raise GuestFailed(f"Guest {uuid} does not run.", details=self.hostname)
        return guest

    def _require_keys(self, volumes: list[BlockDevice], instance: Instance | None = None) -> None:
        """Raises `GuestFailed` if a volume, or the state of the server's TPM, is encrypted, and the hypervisor has no key."""
        for each in volumes:
            if each.is_encrypted and each.volume_id not in self.volume_keys:
                raise GuestFailed(f"Volume {each.volume_id} is encrypted, and there is no key.", details=self.hostname)
        if instance is None or of_instance(instance).tpm is None:
            return
        if tpm_secrets.key_of(instance.system_metadata) is not None and instance.uuid not in self.tpm_keys:
            raise GuestFailed("The state of the TPM is encrypted, and there is no key.", details=self.hostname)

    def _refuse_leaving(self, guest: Guest | None) -> None:
        """Raises `GuestFailed` for a guest that another host may run by now."""
        if guest is not None and guest.going_to is not None:
            raise GuestFailed(
                f"Guest {guest.uuid} is being handed over to another host: only that host may resume it.",
                details=self.hostname,
            )

    def _catch_up(self, guest: Guest) -> None:
        """Has the guest do what it would have done by now. Called under its lock, before anybody looks at what it wrote."""
        if activity.catch_up(guest, self.link.clock.time()):
            self.files.save(guest)

    def _record_double_start(self, uuid: str) -> None:
        """Called before a guest runs. Like a real hypervisor, this one lets it run even if another host runs it too.

        Raises `GuestFailed` if a disk of it in shared storage is another host's, or in use.
        """
        if self.files.shared is not None:
            self.files.shared.require_owned(self.files.disks(uuid))
            self._disk_maker.is_another_client(self.hostname, uuid)
        others = [host for host in self.running_anywhere(uuid) if host != self.hostname]
        if self._peers_dir is not None and any(not self._disk_maker.is_cut_off(host, uuid) for host in others):
            LOG.error("Guest %s is started on %s while another host runs it", uuid, self.hostname)
            self.double_starts.append(uuid)
