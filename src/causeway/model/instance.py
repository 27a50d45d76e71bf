"""Servers (API) = instances (internally)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.network import Vif
from causeway.model.numa import InstanceNUMATopology
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.model.states import PowerState, ServerStatus, TaskState, VmState, server_status


@dataclass
class KeyPair:
    name: str
    user_id: str
    public_key: str
    fingerprint: str
    type: str = "ssh"
    created_at: datetime | None = None
    id: int = 0


@dataclass
class MigrationContext:
    """What the claim at the target host promised; ``old_*``: what the source holds until confirm."""

    migration_uuid: str
    old_numa_topology: InstanceNUMATopology | None = None
    new_numa_topology: InstanceNUMATopology | None = None
    old_pci_devices: list[PciDevice] = field(default_factory=list)
    new_pci_devices: list[PciDevice] = field(default_factory=list)
    old_pci_requests: list[InstancePCIRequest] = field(default_factory=list)
    new_pci_requests: list[InstancePCIRequest] = field(default_factory=list)
    source_host: str | None = None
    dest_host: str | None = None
    source_cell: str | None = None
    dest_cell: str | None = None


@dataclass
class InjectedFile:
    """A personality file; ``contents`` is base64."""

    path: str
    contents: str


@dataclass
class Instance:
    """A server as one cell's database holds it. Times are UTC without a zone."""

    uuid: str
    project_id: str
    user_id: str
    display_name: str
    flavor: Flavor
    hostname: str = ""
    display_description: str | None = None
    reservation_id: str = ""
    launch_index: int = 0
    host: str | None = None
    node: str | None = None
    availability_zone: str | None = None
    # The zone that the user asked for; None if the server may be in any.
    pinned_availability_zone: str | None = None
    vm_state: VmState = VmState.BUILDING
    task_state: TaskState | None = None
    power_state: PowerState = PowerState.NOSTATE
    progress: int = 0
    image_ref: str = ""
    image_meta: ImageMeta | None = None
    kernel_id: str = ""
    ramdisk_id: str = ""
    key_name: str | None = None
    keypairs: list[KeyPair] = field(default_factory=list)
    user_data: str | None = None
    config_drive: bool = False
    injected_files: list[InjectedFile] = field(default_factory=list)
    # For its config drive, while the task that makes the guest is running.
    admin_password: str | None = field(default=None, repr=False)
    root_device_name: str | None = "/dev/vda"
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    auto_disk_config: bool = False
    locked: bool = False
    locked_by: str | None = None
    locked_reason: str | None = None
    old_flavor: Flavor | None = None
    new_flavor: Flavor | None = None
    old_vm_state: VmState | None = None
    migration_context: MigrationContext | None = None
    # The request until the server is built; then what its host holds for it.
    numa_topology: InstanceNUMATopology | None = None
    pci_requests: list[InstancePCIRequest] = field(default_factory=list)
    pci_devices: list[PciDevice] = field(default_factory=list)
    trusted_image_certificates: list[str] | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    system_metadata: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    network_info: list[Vif] = field(default_factory=list)
    # Of a guest that was not made under the computed name: it keeps its own on every host. None: the computed one.
    guest_name: str | None = None
    hidden: bool = False
    deleted: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    launched_at: datetime | None = None
    terminated_at: datetime | None = None
    deleted_at: datetime | None = None

    @property
    def status(self) -> ServerStatus:
        if self.deleted:
            return ServerStatus.DELETED
        return server_status(self.vm_state, self.task_state)

    def name_on_hypervisor(self, template: str) -> str:
        """The guest's name: the recorded one, or that of the template. Raises ValueError if the template makes none."""
        return self.guest_name or self.computed_name(template)

    def computed_name(self, template: str) -> str:
        """The guest's name by ``[DEFAULT] instance_name_template``. Raises ValueError if it makes none."""
        return name_guest(template, self.uuid, self.project_id, self.user_id, self.hostname)


def name_guest(template: str, uuid: str, project_id: str | None, user_id: str | None, hostname: str | None) -> str:
    """Like `Instance.computed_name`.

    Numbers in the template are filled with the uuid as a number, since ids of rows differ between cells.
    """
    number = UUID(uuid).int
    fields = {"uuid": uuid, "id": number, "project_id": project_id, "user_id": user_id, "hostname": hostname}
    try:
        return template % (fields if "%(" in template else number)
    except (TypeError, KeyError) as failure:
        raise ValueError(f"{template} makes no name: {failure}") from failure


@dataclass
class InstanceFault:
    code: int
    message: str
    details: str = ""
    host: str | None = None
    created_at: datetime | None = None


@dataclass
class ActionEvent:
    event: str
    start_time: datetime | None = None
    finish_time: datetime | None = None
    result: str | None = None
    traceback: str | None = None
    host: str | None = None
    details: str | None = None


@dataclass
class InstanceAction:
    action: str
    instance_uuid: str
    request_id: str
    user_id: str | None = None
    project_id: str | None = None
    start_time: datetime | None = None
    updated_at: datetime | None = None
    finish_time: datetime | None = None
    message: str | None = None
    events: list[ActionEvent] = field(default_factory=list)
