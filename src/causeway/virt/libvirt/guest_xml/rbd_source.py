"""Images in Ceph (RBD) that guests open by themselves, by QEMU's own driver: no device and no file on the host.

A definition names the monitors and the account. The account's key is a secret of libvirtd, so no definition has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as ET

PROTOCOL = "rbd"
#: of a monitor, where nobody says another
MONITOR_PORT = "6789"
#: pattern of `RbdSource.image`
IMAGE = r"[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+"


@dataclass(frozen=True)
class Monitor:
    """Where a monitor of Ceph listens. An IPv6 address has no brackets."""

    address: str
    port: str | None = None


@dataclass(frozen=True)
class CephAccess:
    """How guests of this host reach a Ceph.

    ``monitors``: those of now. Empty: those of /etc/ceph/ceph.conf. ``user``: the account, without ``client.``. ``secret_uuid``:
    libvirt's secret with its key; None: Ceph asks for none.
    """

    monitors: tuple[Monitor, ...]
    user: str | None = None
    secret_uuid: str | None = None


@dataclass(frozen=True)
class RbdSource:
    """``image``: POOL/IMAGE."""

    image: str
    access: CephAccess

    def __str__(self) -> str:
        """Says which image it is; the same however it is reached."""
        return f"{PROTOCOL}:{self.image}"

    def element(self) -> ET.Element:
        """Of a libvirt disk of the type ``network``."""
        source = ET.Element("source", protocol=PROTOCOL, name=self.image)
        for monitor in self.access.monitors:
            ET.SubElement(source, "host", {"name": monitor.address} | ({"port": monitor.port} if monitor.port else {}))
        if self.access.user and self.access.secret_uuid:
            auth = ET.SubElement(source, "auth", username=self.access.user)
            ET.SubElement(auth, "secret", type="ceph", uuid=self.access.secret_uuid)
        return source


def name_of(disk: ET.Element) -> str | None:
    """What the disk (or the destination of its copy) is, as `str` of its file, device or `RbdSource`; None: it is empty."""
    source = disk.find("source")
    if source is None:
        return None
    if source.get("protocol") == PROTOCOL:
        return f"{PROTOCOL}:{source.get('name')}"
    return source.get("file") or source.get("dev")


def is_in_ceph(xml: str) -> bool:
    """Whether a guest has disks in Ceph.

    To describe any disk of such a guest (``blockInfo``), QEMU reads from all that are in Ceph. If Ceph does not answer, QEMU
    waits, libvirt holds the guest's lock, and nobody can work with the guest any more.
    """
    return any(disk.get("type") == "network" for disk in ET.fromstring(xml).iterfind("devices/disk"))
