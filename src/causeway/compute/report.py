"""A host's reports of itself: to Placement what it has, to its cell's conductor that it is alive and what runs on it."""

from __future__ import annotations

import logging
import threading
import uuid as uuids
from pathlib import Path

import os_resource_classes
import os_traits

from causeway import durable, errors
from causeway.clients.placement import Inventory, PlacementClient
from causeway.compute.host import Host
from causeway.context import admin_context
from causeway.hardware import pci_fit
from causeway.model import versions
from causeway.model.host import ComputeNode
from causeway.model.outcomes import HostReport

LOG = logging.getLogger(__name__)

# Raised when a compute learns something that conductors must know of before they rely on it.
DISABLED = os_traits.COMPUTE_STATUS_DISABLED


def node_uuid(state_dir: Path) -> str:
    """The host's own identity: made at the first start, kept with its state."""
    path = state_dir / "compute_id"
    if not path.exists():
        durable.write(path, str(uuids.uuid4()))
    return path.read_text().strip()


class Reporter:
    """Reports at once when started, and then every ``report_interval`` seconds on a thread of its own."""

    def __init__(self, host: Host, placement: PlacementClient, state_dir: Path) -> None:
        self._host = host
        self._placement = placement
        self._uuid = node_uuid(state_dir)
        self._stopping = threading.Event()
        self._reporting = threading.Lock()
        host.claims.on_change = self._claims_changed
        self._thread = threading.Thread(target=self._run, name=f"report-{host.name}", daemon=True)

    def start(self) -> None:
        self.report_provider()
        self.report_alive()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._host.conf.report_interval):
            try:
                self.report_alive()
            except errors.CausewayError as failure:
                LOG.warning("Host %s could not report: %s %s", self._host.name, failure.message, failure.details)
            except Exception:
                # The boundary of the thread: without it the host would be down for ever.
                LOG.exception("Host %s could not report", self._host.name)

    def report_provider(self) -> None:
        """Tells Placement what the host has. Traits that others set (disabled, custom ones) are left alone."""
        conf, facts = self._host.conf, self._host.driver.host_facts()
        self._placement.ensure_provider(self._uuid, facts.hypervisor_hostname)
        self._placement.set_inventory(
            self._uuid,
            {
                **self._cpu_inventory(facts.vcpus),
                os_resource_classes.MEMORY_MB: Inventory(
                    facts.memory_mb,
                    reserved=min(conf.reserved_host_memory_mb, facts.memory_mb - 1),
                    allocation_ratio=conf.ram_allocation_ratio or conf.initial_ram_allocation_ratio,
                ),
                **self._disk_inventory(facts.local_gb),
            },
        )
        traits = {os_traits.COMPUTE_NODE, *facts.traits}
        same_host = {os_traits.COMPUTE_SAME_HOST_COLD_MIGRATE}
        if self._host.driver.supports_migrate_to_same_host:
            self._placement.change_traits(self._uuid, add=traits | same_host)
        else:
            self._placement.change_traits(self._uuid, add=traits, remove=same_host)

    def _disk_inventory(self, local_gb: int) -> dict[str, Inventory]:
        """None if the disk is a sharing provider's, which has it in Placement: it would be counted twice."""
        conf, disk = self._host.conf, os_resource_classes.DISK_GB
        if self._placement.is_shared_with(self._uuid, disk):
            if not self._placement.get_usages(self._uuid).get(disk):
                return {}
            LOG.warning(
                "Host %s has shared storage, but servers hold %s of its own provider: it goes on telling Placement of its"
                " disk. Move these servers away and back, then restart this service.",
                self._host.name,
                disk,
            )
        own = Inventory(
            local_gb,
            reserved=-(-conf.reserved_host_disk_mb // 1024),
            allocation_ratio=conf.disk_allocation_ratio or conf.initial_disk_allocation_ratio,
        )
        return {disk: own}

    def _cpu_inventory(self, vcpus: int) -> dict[str, Inventory]:
        """VCPU for shared CPUs, PCPU for dedicated ones; a class that the host has nothing of is left out."""
        conf, topology = self._host.conf, self._host.claims.topology()
        dedicated = 0
        if conf.compute.cpu_dedicated_set or conf.compute.cpu_shared_set:
            cells = topology.cells if topology is not None else []
            vcpus, dedicated = sum(len(c.cpuset) for c in cells), sum(len(c.pcpuset) for c in cells)
        found = {}
        if vcpus:
            found[os_resource_classes.VCPU] = Inventory(
                vcpus,
                reserved=conf.reserved_host_cpus,
                allocation_ratio=conf.cpu_allocation_ratio or conf.initial_cpu_allocation_ratio,
            )
        if dedicated:
            found[os_resource_classes.PCPU] = Inventory(dedicated)
        return found

    def _claims_changed(self) -> None:
        """The scheduler sees it with the next request; if the conductor can't be told now, with the next report."""
        try:
            self.report_alive()
        except errors.CausewayError as failure:
            LOG.warning("Host %s could not report its claims: %s", self._host.name, failure.message)

    def report_alive(self) -> None:
        """Tells the cell's conductor. One after the other: no report overtakes a newer one."""
        with self._reporting:
            self._host.conductor.report_host(admin_context(), report=self._report())

    def _report(self) -> HostReport:
        conf, facts, guests = self._host.conf, self._host.driver.host_facts(), self._host.driver.list_guests()
        node = ComputeNode(
            uuid=self._uuid,
            host=self._host.name,
            hypervisor_hostname=facts.hypervisor_hostname,
            hypervisor_type=facts.hypervisor_type,
            hypervisor_version=facts.hypervisor_version,
            vcpus=facts.vcpus,
            memory_mb=facts.memory_mb,
            local_gb=facts.local_gb,
            running_vms=len(guests),
            cpu_info=facts.cpu_info,
            host_ip=facts.host_ip,
            supported_instances=facts.supported_instances,
            cpu_allocation_ratio=conf.cpu_allocation_ratio or conf.initial_cpu_allocation_ratio,
            ram_allocation_ratio=conf.ram_allocation_ratio or conf.initial_ram_allocation_ratio,
            disk_allocation_ratio=conf.disk_allocation_ratio or conf.initial_disk_allocation_ratio,
            uptime=facts.uptime,
            capabilities={
                "vcpus": facts.vcpus,
                "memory_mb": facts.memory_mb,
                "hypervisor_type": facts.hypervisor_type,
                "hypervisor_version": facts.hypervisor_version,
                "supports_migrate_to_same_host": self._host.driver.supports_migrate_to_same_host,
            },
        )
        devices = self._host.claims.devices()
        node.numa_topology, node.pci_stats = self._host.claims.topology(), pci_fit.pools(devices)
        return HostReport(
            host=self._host.name, service_version=versions.SERVICE, node=node, guests=guests, pci_devices=devices
        )
