"""What hosts have of a server: seen on the hosts themselves, past everything that Causeway believes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
from platformdirs import user_cache_path
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from causeway import errors
from causeway.cli.demo.guest import GuestReport, last_report
from causeway.model.states import PowerState
from causeway.virt.driver import RESCUE_DISK, SWAP_DISK
from causeway.virt.simulated import firmware
from causeway.virt.simulated.guest import Guest
from tests.gone_guests import unless_gone


class Guests(Protocol):
    """``hosts`` is host -> the folder that has ``instances``."""

    def power_states(self, uuid: str) -> dict[str, PowerState]:
        """host -> the power state of the guest that its hypervisor knows."""

    def disks(self, uuid: str) -> dict[str, list[str]]:
        """host -> "disks", "rescue", "stashed", "download" and "offer"."""

    def devices(self, uuid: str) -> dict[str, list[str]]:
        """host -> the ids of the volumes and ports that its guest has."""

    def mark(self, uuid: str, text: str) -> None:
        """A program in the guest writes to its disk."""

    def marks(self, uuid: str, host: str, text: str) -> int:
        """How often what was written is on the disk of the guest at a host."""

    def vcpus(self, uuid: str, host: str) -> int: ...


def disks(folders: dict[str, Path], uuid: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for host, base in folders.items():
        kinds = [
            kind
            for kind, name in (("disks", uuid), ("rescue", f"{uuid}/{RESCUE_DISK}"), ("stashed", f"{uuid}_resize"))
            if (base / "instances" / name).exists()
        ]
        kinds += ["download" for path in base.glob(f"_base/*{uuid}*") if path.exists()]
        if "stashed" not in kinds:
            kinds += ["offer" for _folder in base.glob(f"offers/*.{uuid}")]
        if kinds:
            found[host] = kinds
    return found


def _devices(guest: Guest) -> list[str]:
    """The disks that keep their data: the root disk and ephemeral ones."""
    if guest.is_rescued:
        return [device for device, path in guest.local_disks.items() if Path(path).name != SWAP_DISK]
    return [guest.root_device, *(device for device, path in guest.local_disks.items() if ".eph" in Path(path).name)]


def _count(guest: Guest, device: str, text: str) -> int:
    if device not in guest.devices():
        # It was taken from the guest.
        return 0
    try:
        return guest.read(device).count(text)
    except errors.GuestFailed:
        # Gone, or damaged.
        return 0


class SimulatedGuests:
    """Guests that are small files."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders

    def _guests(self, uuid: str) -> dict[str, Guest]:
        found = {}
        for host, base in self._folders.items():
            # It may go while others look at it.
            with suppress(FileNotFoundError):
                content = (base / "guests" / f"{uuid}.json").read_bytes()
                found[host] = msgspec.json.decode(content, type=Guest)
        return found

    def power_states(self, uuid: str) -> dict[str, PowerState]:
        return {host: guest.power_state for host, guest in self._guests(uuid).items()}

    def devices(self, uuid: str) -> dict[str, list[str]]:
        return {
            host: [each.volume_id for each in guest.volumes if each.volume_id] + [port.id for port in guest.ports]
            for host, guest in self._guests(uuid).items()
        }

    def disks(self, uuid: str) -> dict[str, list[str]]:
        return disks(self._folders, uuid)

    def mark(self, uuid: str, text: str) -> None:
        (guest,) = self._guests(uuid).values()
        for device in _devices(guest):
            guest.write(device, text)
        for name in guest.firmware:
            firmware.add(self._folder(guest), name, text)

    def marks(self, uuid: str, host: str, text: str) -> int:
        try:
            guest = self._guests(uuid)[host]
            # All the same, or something is lost.
            counts = {_count(guest, device, text) for device in _devices(guest)}
            kept = firmware.lines(self._folder(guest), guest.firmware)
        except (KeyError, FileNotFoundError):
            # The guest went while this looked.
            return 0
        counts |= {kept.get(name, []).count(text) for name in guest.firmware}
        return counts.pop() if len(counts) == 1 else 0

    def vcpus(self, uuid: str, host: str) -> int:
        return self._guests(uuid)[host].vcpus

    def _folder(self, guest: Guest) -> Path:
        return self._folders[guest.host] / "instances" / guest.uuid


class LibvirtGuests:
    """Guests of QEMU in the lab of a state directory. They mark their disks at every boot, and say so on their console."""

    READY_SECONDS = 300.0

    def __init__(self, lab_directory: Path, hosts: list[str]) -> None:
        from causeway.virt.lab.hosts import Lab

        self.lab = Lab(lab_directory)
        self._hosts = hosts
        self._folders = {host: lab_directory / "hosts" / host for host in hosts}
        self._connections: dict[str, Any] = {}
        self._first: dict[str, str] = {}

    def power_states(self, uuid: str) -> dict[str, PowerState]:
        found = {}
        for host in self._hosts:
            for domain in self._domains(host):
                if domain.UUIDString() != uuid:
                    continue
                with unless_gone():
                    found[host] = PowerState.RUNNING if domain.isActive() else PowerState.SHUTDOWN
        return found

    def _domains(self, host: str) -> Any:
        """What its libvirtd knows. One that has died since comes back."""
        import libvirt

        for attempt in Retrying(
            retry=retry_if_exception_type(libvirt.libvirtError), wait=wait_fixed(0.5), stop=stop_after_delay(30)
        ):
            with attempt:
                known = self._connections.pop(host, None)
                if known is None:
                    known = libvirt.open(f"qemu+unix:///system?socket={self.lab._socket(host)}")
                found = known.listAllDomains()
                self._connections[host] = known
                return found
        raise AssertionError("it is tried once at least")

    def devices(self, uuid: str) -> dict[str, list[str]]:
        raise NotImplementedError("storms are of simulated guests")

    def disks(self, uuid: str) -> dict[str, list[str]]:
        return disks(self._folders, uuid)

    def mark(self, uuid: str, text: str) -> None:  # noqa: ARG002
        """The guest writes when it boots, something random: what that is, is remembered."""
        (host,) = self.power_states(uuid)
        self._first[uuid] = self._report(uuid, host).first("vda")
        assert self._first[uuid].startswith("causeway-marker"), self._first[uuid]

    def marks(self, uuid: str, host: str, text: str) -> int:  # noqa: ARG002
        return int(self._report(uuid, host).first("vda") == self._first[uuid])

    def vcpus(self, uuid: str, host: str) -> int:
        return self._report(uuid, host).vcpus

    def _report(self, uuid: str, host: str) -> GuestReport:
        """What the guest said when it booted last, once it has said it all."""
        from tests.faults.clouds.site import until

        path = self._folders[host] / "instances" / uuid / "console.log"

        def look() -> GuestReport:
            return last_report(path.read_text(errors="replace") if path.exists() else "")

        report: GuestReport = until(look, lambda seen: seen.ready, self.READY_SECONDS)
        return report

    def stop(self) -> None:
        """Ends the hosts with their guests."""
        for connection in self._connections.values():
            connection.close()
        self.lab.stop(keep_guests=False)


def guest_image_cache() -> Path:
    """Where the image of real guests is kept between runs: making it takes a while."""
    return user_cache_path("causeway") / "guest-image"
