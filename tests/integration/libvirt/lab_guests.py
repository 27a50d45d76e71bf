"""Guests, networks and volumes of these tests, and what guests say."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.virt import image_formats
from causeway.virt.driver import BaseImage, GuestSpec, RootDisk
from causeway.virt.lab.guest_image import GuestImage
from causeway.virt.lab.hosts import Lab
from causeway.virt.lab.topology import NetworkOfLab, NetworkTopology, PortTopology, SubnetTopology

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

# Guests are emulated: what takes ten seconds on a quiet machine takes minutes on a slow one with other tests beside it.
READY_SECONDS = 300.0
# Stops whoever listens at the agent's channel.
STOP_AGENT = b"""#!/bin/sh
while sleep 0.2; do
    for process in /proc/[0-9]*; do
        ls -l $process/fd 2>/dev/null | grep -q vport || continue
        kill -STOP ${process#/proc/}
        echo CAUSEWAY-MUTE > /dev/console
        exit
    done
done
"""


@dataclass
class Net:
    """One network with DHCP; addresses are given out one after the other."""

    lab: Lab
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    ports: list[PortTopology] = field(default_factory=list)

    def port(self) -> Vif:
        number = len(self.ports) + 10
        mac, address = f"fa:16:3e:00:00:{number:02x}", f"192.168.77.{number}"
        self.ports.append(PortTopology(mac, address))
        self.sync()
        return Vif(
            id=str(uuid.uuid4()),
            address=mac,
            network_id=self.id,
            fixed_ips=[FixedIp(address, "subnet", cidr="192.168.77.0/24")],
            vif_type="bridge",
            details={"bridge_name": f"brq{self.id[:11]}"},
        )

    def sync(self) -> None:
        self.sync_with()

    def sync_with(self, *others: Net) -> None:
        self.lab.network.sync(NetworkTopology([net.topology() for net in (self, *others)]))

    def topology(self) -> NetworkOfLab:
        return NetworkOfLab(
            self.id, subnets=[SubnetTopology("192.168.77.0/24", "192.168.77.2")], ports=list(self.ports)
        )


@dataclass
class Console:
    """What a guest said, in the form `guest_init.sh` describes."""

    text: str

    @property
    def boots(self) -> int:
        return len(re.findall(r"^CAUSEWAY-READY", self.text, re.M))

    def last(self, kind: str, **having: str) -> dict[str, str]:
        """The key=value pairs of the last line of this kind; ``first`` takes the rest of its line."""
        for line in reversed(self.text.splitlines()):
            if not line.startswith(kind):
                continue
            head, _, first = line.partition(" first=")
            found = dict(part.split("=", 1) for part in head.split()[1:]) | ({"first": first.strip()} if first else {})
            if having.items() <= found.items():
                return found
        raise AssertionError(f"the guest never said {kind} {having}:\n{self.text}")


@dataclass
class Guest:
    """A server with a guest on one of the hosts. ``driver`` is where it is now."""

    driver: LibvirtDriver
    instance: Instance
    base: BaseImage | None
    vifs: list[Vif] = field(default_factory=list)
    volumes: list[BlockDevice] = field(default_factory=list)
    config_drive: dict[str, bytes] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return self.instance.uuid

    def spec(self, root_disk: RootDisk | None = None, *, power_on: bool = True) -> GuestSpec:
        return GuestSpec(self.instance, root_disk, self.volumes, self.vifs, power_on, self.config_drive)

    def new_disk(self) -> RootDisk:
        return RootDisk(self.base, "the-image", size_gb=self.instance.flavor.root_gb)

    def spawn(self) -> Console:
        self.driver.spawn(self.spec(self.new_disk()))
        return self.wait_for_boot()

    def console(self) -> Console:
        said = self.driver.console_output(self.uuid).decode(errors="replace").replace("\r", "")
        # A line that is not at its end yet says nothing.
        return Console(said[: said.rfind("\n") + 1])

    def wait_for_boot(self, number: int = 1) -> Console:
        return self.wait(lambda said: said.boots >= number)

    def wait(self, condition: Callable[[Console], object]) -> Console:
        """The console once it fulfils a condition. A file can't be waited for, so it is read again and again."""
        end = time.monotonic() + READY_SECONDS
        while not condition(said := self.console()):
            assert time.monotonic() < end, f"the guest did not come that far:\n{said.text}"
            time.sleep(0.1)
        return said


@dataclass
class Cloud:
    """Makes guests and volumes, and removes them."""

    drivers: list[LibvirtDriver]
    image: GuestImage
    directory: Path
    instances_dirs: list[Path]
    guests: list[Guest] = field(default_factory=list)

    def guest(self, *, host: int = 0, vcpus: int = 1, memory_mb: int = 128, vifs: list[Vif] | None = None) -> Guest:
        instance = Instance(
            uuid=str(uuid.uuid4()),
            project_id="project",
            user_id="user",
            display_name="a server",
            flavor=Flavor("1", "small", vcpus, memory_mb, root_gb=1),
            image_ref="the-image",
        )
        found = image_formats.inspect(self.image.path, "qcow2", "The guest image")
        base = BaseImage(self.image.path, found.disk_format, found.virtual_size)
        guest = Guest(self.drivers[host], instance, base, list(vifs or []))
        self.guests.append(guest)
        return guest

    def volume(self, guest: Guest, device_name: str = "/dev/vdb") -> BlockDevice:
        path = self.directory / f"volume-{len(list(self.directory.iterdir()))}"
        with path.open("wb") as file:
            file.truncate(64 * 2**20)
        return BlockDevice(
            uuid=str(uuid.uuid4()),
            instance_uuid=guest.uuid,
            source_type="volume",
            destination_type="volume",
            device_name=device_name,
            volume_id=str(uuid.uuid4()),
            connection_info={"driver_volume_type": "local", "data": {"device_path": str(path), "format": "raw"}},
        )

    def path_of(self, volume: BlockDevice) -> Path:
        assert volume.connection_info
        return Path(volume.connection_info["data"]["device_path"])

    def clean(self) -> None:
        for guest in self.guests:
            for driver in self.drivers:
                driver.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
                driver.delete_stashed_disks(guest.uuid)


def image_lines(path: Path) -> list[str]:
    """The lines that guests wrote to the start of a raw volume."""
    with path.open("rb") as file:
        return file.read(65536).rstrip(b"\0").decode().splitlines()
