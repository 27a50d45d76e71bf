"""Makes the whole hardware request of a server: NUMA cells and PCI devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oslo_config import cfg

from causeway.hardware.numa_request import numa_topology
from causeway.hardware.pci_request import affinity_of, pci_requests
from causeway.hardware.port_devices import with_policy
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


def asked_of(
    conf: cfg.ConfigOpts, flavor: Flavor, image: ImageMeta | None, of_ports: Iterable[InstancePCIRequest] = ()
) -> HardwareRequest:
    """Returns what flavor, image and ports request of a host's hardware.

    ``of_ports``: the devices that the server's ports need (`causeway.hardware.port_devices`). Raises BadRequest for
    contradictions, and for PCI aliases that are not in ``[pci] alias``.
    """
    requests = pci_requests(flavor, conf.pci.alias, image)
    requests += with_policy(of_ports, affinity_of(flavor, image))
    return HardwareRequest(numa_topology(flavor, image), requests)
