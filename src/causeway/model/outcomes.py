"""The outcomes of work that a compute returns, and a conductor records."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from causeway.model.block_device import BlockDevice
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.numa import InstanceNUMATopology
from causeway.model.pci import PciDevice
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import PowerState

# The epoch of whoever acquires an operation first: nobody orders anything in an earlier one.
FIRST_EPOCH = 2


# Hosts of 0.1.0, and the orders that they missed, have the operation's id as "move_id".
class OperationToken(msgspec.Struct, rename={"operation_id": "move_id"}):
    """Identifies an order to a compute: its operation, the operation's epoch, and the step. An older epoch is refused."""

    operation_id: str
    migration_uuid: str
    epoch: int
    step: str
    #: progress reports with this token follow the rate in the answer. Release 0.1.0 has this name of it, on the wire
    heeds_rate: bool = False


@dataclass
class RecordedClaim:
    """What a host should hold for a server, according to ``instance``. ``migration_uuid``: of the move that brought it."""

    instance: Instance
    migration_uuid: str | None = None


@dataclass
class GuestOutcome:
    """A guest after the work, as the server's record must have it from now on."""

    power_state: PowerState
    network_info: list[Vif] = field(default_factory=list)
    block_devices: list[BlockDevice] = field(default_factory=list)
    bytes_done: int | None = None
    # The host's claim, if the server asks for one.
    numa_topology: InstanceNUMATopology | None = None
    pci_devices: list[PciDevice] = field(default_factory=list)
    # The machine type of a new guest, to be recorded if none is.
    machine_type: str | None = None
    # The name that the guest has on this host, for a server whose record has one; None: not said.
    guest_name: str | None = None

    @property
    def renamed(self) -> dict[str, str]:
        """The change of the server's record: the guest may have got another name, because the recorded one was not free."""
        return {} if self.guest_name is None else {"guest_name": self.guest_name}


@dataclass
class UploadedDisk:
    """A root disk that was uploaded. ``bytes_done``: the image's size; None if it is a volume."""

    bytes_done: int | None = None


@dataclass
class CopiedVolume:
    """A volume as connected to the host, with the whole content of another one. ``bytes_done``: None if not counted."""

    volume: BlockDevice
    bytes_done: int | None = None


@dataclass
class Snapshot:
    """A local disk of a moved server in the image service. ``size`` in bytes."""

    image_id: str
    disk_format: str
    size: int
    # Set if the snapshot holds only what differs from this image
    base_image_id: str | None = None
    # Of the bytes that were sent; None if an earlier attempt sent them
    sha256: str | None = None
    # Bytes of a real disk that each byte stands for: files of simulated guests are small
    scale: float = 1.0

    @property
    def shown(self) -> int:
        """Bytes, as progress and history show them."""
        return round(self.size * self.scale)


@dataclass
class OfferedDisk:
    """A local disk that another host may fetch. ``size`` in bytes."""

    name: str
    disk_format: str
    size: int
    sha256: str
    # Set if it holds only what differs from this image
    base_image_id: str | None = None
    # As `Snapshot` has it
    scale: float = 1.0

    @property
    def shown(self) -> int:
        """Bytes, as progress and history show them."""
        return round(self.size * self.scale)


@dataclass
class DiskOffer:
    """The local disks of a moved server, offered by its source. ``token`` gives access to them, and is never shown."""

    url: str
    token: str = field(repr=False)
    disks: list[OfferedDisk] = field(default_factory=list)

    @property
    def shown(self) -> int:
        """Bytes in all, as progress and history show them."""
        return sum(disk.shown for disk in self.disks)


@dataclass
class SourceOutcome:
    """What the source returns: its guest is off or saved, and the disks are stashed there."""

    power_state: PowerState
    snapshot: Snapshot | None = None
    # the other files by name: ephemeral disks, the guest's memory, the state of firmware and TPM
    disks: dict[str, Snapshot] = field(default_factory=dict)
    # what the target fetches: inside a cell always, between cells if the hosts reach one another
    offer: DiskOffer | None = None
    # what the target takes over in storage that both hosts reach
    shared: dict[str, SharedDisk] = field(default_factory=dict)


@dataclass
class HostReport:
    """A compute's report of itself to its cell's conductor."""

    host: str
    service_version: int
    node: ComputeNode
    # uuid -> power state of every guest known to the hypervisor
    guests: dict[str, PowerState] = field(default_factory=dict)
    pci_devices: list[PciDevice] = field(default_factory=list)
