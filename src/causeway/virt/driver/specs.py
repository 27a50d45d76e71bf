"""What a driver is given to make a guest from, and the names of the disks of a guest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.rescue import RescueImage
from causeway.model.shared_disk import SharedDisk

# (bytes done, bytes total)
Progress = Callable[[int, int], None]

#: the disk that a server boots from; a server that boots from a volume has none
ROOT_DISK = "disk"
SWAP_DISK = "disk.swap"
#: what a rescued server boots from. Nothing on it belongs to the server, and it never travels
RESCUE_DISK = "disk.rescue"
#: the name under which saved memory travels with the disks
MEMORY = "memory"
#: the name under which the state of firmware and TPM (`causeway.virt.kept_state`) travels with the disks
KEPT_STATE = "state"


def no_progress(done: int, total: int) -> None:
    """A `Progress` for callers who need no reports."""


@dataclass(frozen=True)
class BaseImage:
    """An image on this host, whose content was checked when it came (`causeway.virt.image_formats`).

    ``disk_format``: raw or qcow2, named to every program. ``virtual_size``: bytes of the disk that guests see.
    """

    path: Path
    disk_format: str
    virtual_size: int


@dataclass(frozen=True)
class StoredImage:
    """An image where the image service keeps it, in storage that this host reaches. It is raw.

    ``location``: as the image service says it. ``virtual_size``: bytes of the disk that guests see.
    """

    location: str
    virtual_size: int


@dataclass(frozen=True)
class DiskCopy:
    """A disk of ``size`` bytes that is put together round by round at the target of a move.

    ``path``: the file that is the disk, or that says where the driver keeps it; its name is the disk's. ``base``: the image that
    the disk stands on, with its id.
    """

    path: Path
    operation_id: str
    uuid: str
    size: int
    base: BaseImage | None = None
    base_image_id: str | None = None


@dataclass
class RootDisk:
    """Where the root disk of a guest comes from, if it is not a volume.

    A new server has only a base image. A server that moved here has a snapshot from its former host: if ``base`` is set, the
    snapshot holds only what differs from that image, otherwise it holds everything.

    The driver owns ``snapshot`` and moves the file; if the file has other names too, their content does not change. The disk
    grows to ``size_gb`` GiB if it is smaller (0: it keeps the size of the image).

    ``base`` was checked. The snapshot was not: the driver raises `ImageRefused` unless it is in ``snapshot_format``, in which the
    driver exports disks, names no other files, and is at most ``size_gb`` large (0: as large as all of the host's storage).
    """

    base: BaseImage | None
    base_image_id: str | None
    snapshot: Path | None = None
    snapshot_format: str = "qcow2"
    size_gb: int = 0
    #: the driver itself put the snapshot together on this host (`WarmCopyMethods.open_copy`)
    is_copy: bool = False
    #: it is in storage that its former host and this one reach: the driver takes it over instead
    shared: SharedDisk | None = None
    #: the base image, if nothing of it has to be on this host (`SharedDiskMethods.stored_image`); ``base`` is None then
    stored_image: StoredImage | None = None
    #: nothing of the disk may stay in ``base`` (raw then) or ``stored_image``, which is deleted soon
    stands_alone: bool = False


@dataclass
class LocalDisk:
    """An ephemeral disk or swap of a guest: a local disk beside its root disk. ``size_mb`` in MiB.

    ``snapshot`` is the content that came from another host; the driver checks and takes the file, as that of a `RootDisk`.
    Without a snapshot,

    - a disk that exists stays, and grows if ``size_mb`` is larger; swap of another size is made again, empty;
    - a disk that does not exist is made and formatted as ``guest_format`` (``swap``, ``ext4``, ``vfat``, ...; None: the driver
      chooses what the tools of the host can make) with the label ``label``.
    """

    name: str
    device_name: str  # /dev/vdb
    size_mb: int
    guest_format: str | None = None
    label: str = ""
    disk_bus: str | None = None
    snapshot: Path | None = None
    snapshot_format: str = "qcow2"
    #: as those of a `RootDisk`
    is_copy: bool = False
    shared: SharedDisk | None = None

    @property
    def is_swap(self) -> bool:
        return self.name == SWAP_DISK


@dataclass
class Rescue:
    """What a rescued guest boots instead of its root disk. ``base``: the image; None: the rescue disk exists."""

    image: RescueImage
    base: BaseImage | None = None


@dataclass
class GuestSpec:
    """Everything that a driver needs to make a guest. CPUs and memory come from ``instance.flavor``."""

    instance: Instance
    #: None: the root disk exists already (the guest was stopped, or its disks were restored), or it is a volume
    root_disk: RootDisk | None
    #: with connection_info and device_name
    volumes: list[BlockDevice]
    vifs: list[Vif]
    power_on: bool = True
    #: name -> content of each file on the config drive; empty: no config drive
    config_drive: dict[str, bytes] = field(default_factory=dict)
    #: ephemeral disks and swap
    local_disks: list[LocalDisk] = field(default_factory=list)
    #: memory that came from another host, for `SavedMemoryMethods.wake`; the driver takes the file
    memory: Path | None = None
    #: state of firmware and TPM that came from another host; the driver takes the file. None: what this host has stays
    kept_state: Path | None = None
    #: set for a rescued server. ``volumes`` and ``local_disks`` are then those that the guest has while it is rescued
    rescue: Rescue | None = None
