"""What a server of a flavor asks of a host's hardware: NUMA cells and PCI devices."""

from __future__ import annotations

from dataclasses import dataclass, field

from oslo_config import cfg

from causeway.hardware.numa_request import numa_topology
from causeway.hardware.pci_request import pci_requests
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.numa import InstanceNUMATopology
from causeway.model.pci import InstancePCIRequest


@dataclass
class HardwareRequest:
    numa_topology: InstanceNUMATopology | None = None
    pci_requests: list[InstancePCIRequest] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.numa_topology is not None or bool(self.pci_requests)


def asked_of(conf: cfg.ConfigOpts, flavor: Flavor, image: ImageMeta | None) -> HardwareRequest:
    """Raises BadRequest for what contradicts itself, and for PCI aliases that are not in ``[pci] alias``."""
    return HardwareRequest(numa_topology(flavor, image), pci_requests(flavor, conf.pci.alias))
