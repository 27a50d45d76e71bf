"""What the records say of a host that is to be taken over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from causeway.model.block_device import BlockDevice, is_volume_backed, local_disk_names
from causeway.model.instance import Instance
from causeway.model.states import VmState

ROOT_DISK, CONFIG_DRIVE = "disk", "disk.config"
_OF_RESCUES = re.compile(r"disk\.(rescue|config\.rescue)")


@dataclass
class RecordedServer:
    """A server that is on the host, and is not deleted."""

    instance: Instance
    block_devices: list[BlockDevice] = field(default_factory=list)

    @property
    def uuid(self) -> str:
        return self.instance.uuid

    @property
    def is_rescued(self) -> bool:
        return self.instance.vm_state is VmState.RESCUED

    def local_disks(self) -> Iterator[str]:
        """The names of its disks on the host."""
        if not is_volume_backed(self.block_devices):
            yield ROOT_DISK
        for name, _device in local_disk_names(self.block_devices):
            yield name

    def may_have(self, name: str) -> bool:
        """Whether a file of this name may be a disk of its guest beside its local disks."""
        return name == CONFIG_DRIVE or (self.is_rescued and _OF_RESCUES.fullmatch(name) is not None)

    @property
    def volumes(self) -> set[str]:
        return {each.volume_id for each in self.block_devices if each.is_volume and each.volume_id}


@dataclass
class RecordedHost:
    """``node_uuid``: of its compute node, and of its provider in Placement; None: none is recorded."""

    host: str
    node_uuid: str | None
    hypervisor_hostname: str | None = None
    servers: list[RecordedServer] = field(default_factory=list)
