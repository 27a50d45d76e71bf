"""A host's reports: its resources to Placement, and to its cell's conductor that it is alive and what runs on it."""

from __future__ import annotations

import logging
import threading
import uuid as uuids
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import os_resource_classes
import os_traits

from causeway import durable, errors
from causeway.clients.placement import Inventory, PlacementClient
from causeway.compute.host import Host
from causeway.compute.host.own_folders import why_unwritable
from causeway.compute.upkeep.certificate_ends import CertificateWatch, files_in_use
from causeway.compute.upkeep.shared_pool import SharedPool
from causeway.context import admin_context
from causeway.hardware import pci_fit
from causeway.model import versions
from causeway.model.certificates import CERTIFICATES_ENDING, CertificateEnd
from causeway.model.host import (
    ATTACHES_PORT_DEVICES,
    DISK_WORK,
    FAILED_BUILDS,
    FOLDERS_LACK,
    LIVE_MIGRATION_LACKS,
    OTHER_OWNER,
    REQUIRES_SIGNATURES,
    STORAGE,
    STORES_IMAGES,
    ComputeNode,
)
from causeway.model.outcomes import HostReport

LOG = logging.getLogger(__name__)

# Seconds between two checks of certificates and of what live migrations lack: both change seldom, and a check takes seconds.
_READINESS_SECONDS = 600.0
# The traits that a host sets and unsets itself. Others set traits too.
_OF_HYPERVISOR = {
    os_traits.COMPUTE_SAME_HOST_COLD_MIGRATE,
    *(
        trait
        for prefix in ("FIRMWARE", "GRAPHICS_MODEL", "NET_VIF_MODEL", "SECURITY_TPM", "SECURITY_UEFI", "STORAGE_BUS")
        for trait in os_traits.get_traits(f"COMPUTE_{prefix}_")
    ),
}
DISABLED = os_traits.COMPUTE_STATUS_DISABLED


def has_lived(state_dir: Path) -> bool:
    """Whether a compute service has worked with this state before."""
    return any((state_dir / name).exists() for name in ("compute_id", "disk-server-port"))


def node_uuid(state_dir: Path, known: Callable[[], str | None], *, lived: bool) -> str:
    """The host's own identity: made at the first start, and kept with its state.

    ``known``: returns the identity that others have for a host of this name. It is called if the file is torn, or missing
    though the host has ``lived``. It is not called for a host without any state, since another host may have the same name.
    """
    path = state_dir / "compute_id"
    try:
        found = durable.read(path, _identity)
    except durable.Torn:
        found, lived = None, True
    if found is None:
        found = known() if lived else None
        if found is not None:
            LOG.warning("%s: this host is %s again, as Placement knows it", path, found)
        found = found or str(uuids.uuid4())
        durable.write(path, found)
    return found


def _identity(content: bytes) -> str:
    return str(uuids.UUID(content.decode().strip()))


# Seconds for which a stopping host waits for a report under way.
_LAST_REPORT = 10.0
# Seconds for which any report is waited for, however often hosts report.
_LEAST_PATIENCE = 5.0


class Reporter:
    """Reports at once when started, and then every ``report_interval`` seconds on a thread of its own."""

    def __init__(self, host: Host, placement: PlacementClient, state_dir: Path) -> None:
        self._host = host
        self._placement = placement
        self._state_dir, self._lived = state_dir, has_lived(state_dir)
        self._uuid = ""
        self._stopping = threading.Event()
        self._reporting = threading.Lock()
        host.claims.on_change = self._claims_changed
        self._thread = threading.Thread(target=self._run, name=f"report-{host.name}", daemon=True)
        #: what the host lacks for live migrations; None if not known yet
        self._lacks: list[str] | None = None
        self._certificates = CertificateWatch(host.name, host.conf.certificate_warning_days)
        #: the certificates that end soon; None if not known yet
        self._ending: list[CertificateEnd] | None = None
        self._folders_lack: str | None = None
        self._looking = threading.Thread(target=self._look, name=f"readiness-{host.name}", daemon=True)

    def start(self) -> None:
        """Raises ServiceFailed if Placement does not answer, Conflict if another host has this one's name."""
        self._uuid = node_uuid(self._state_dir, self._known_uuid, lived=self._lived)
        self._pool = SharedPool(self._placement, self._uuid)
        self.report_provider()
        self.report_alive()
        self._try("claim again what servers hold", self.restore_claims)
        self._thread.start()
        if self._host.driver.supports_live_migration or files_in_use(self._host.conf, self._host.driver):
            # Nothing waits for this thread: the hypervisor that it asks may be slow, or not answer.
            self._looking.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            # A report without an answer, because the host's cell was deleted, must not block the end.
            self._thread.join(_LAST_REPORT)

    def _run(self) -> None:
        while not self._stopping.wait(self._host.conf.report_interval):
            # The host must report that it is up, whatever else fails.
            self._try("report", self._report_again)
            self._try("report the size of its storage", self._report_pool)
            self._try("claim again what servers hold", self.restore_claims)

    def _look(self) -> None:
        while True:
            # First: it asks nobody who may not answer.
            self._try("look when its certificates expire", self._find_ending)
            self._try("find out what it lacks for live migrations", self._find_lacks)
            if self._stopping.wait(_READINESS_SECONDS):
                return

    def _find_lacks(self) -> None:
        """Finds what the host lacks for live migrations. The next report has it, and the log if it is new."""
        before, self._lacks = self._lacks or [], self._host.driver.live_migration_lacks()
        for lack in self._lacks:
            if lack not in before:
                LOG.warning("Live migrations of host %s: %s", self._host.name, lack)

    def _find_ending(self) -> None:
        """Finds the certificates that end soon. The next report has them."""
        files = files_in_use(self._host.conf, self._host.driver)
        self._ending = self._certificates.look(files, datetime.now(UTC))

    def _try(self, what: str, work: Callable[[], None]) -> None:
        """Logs any error of ``work``, which the next report tries again. Otherwise the host would be down for ever."""
        try:
            work()
        except errors.CausewayError as failure:
            LOG.warning("Host %s could not %s: %s %s", self._host.name, what, failure.message, failure.details)
        except Exception:
            LOG.exception("Host %s could not %s", self._host.name, what)

    def _known_uuid(self) -> str | None:
        found = self._placement.list_providers(name=self._host.driver.host_facts().hypervisor_hostname)
        return found[0].uuid if found else None

    def report_provider(self) -> None:
        """Reports the host's resources to Placement. Traits that others set (disabled, custom ones) stay."""
        conf, facts = self._host.conf, self._host.driver.host_facts()
        self._placement.ensure_provider(self._uuid, facts.hypervisor_hostname)
        self._report_pool()
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
        if self._host.driver.supports_migrate_to_same_host:
            traits.add(os_traits.COMPUTE_SAME_HOST_COLD_MIGRATE)
        self._placement.change_traits(self._uuid, add=traits, remove=_OF_HYPERVISOR - traits)

    def _report_pool(self) -> None:
        """Reports the storage that this host shares with others; after the first time, if its size has changed."""
        conf, driver = self._host.conf, self._host.driver
        storage, disk = driver.storage(), None
        if storage is not None:
            ratio = conf.disk_allocation_ratio or conf.initial_disk_allocation_ratio
            disk = Inventory(driver.host_facts().local_gb, allocation_ratio=ratio)
        self._pool.report(storage, disk)

    def _disk_inventory(self, local_gb: int) -> dict[str, Inventory]:
        """The inventory of the disk; empty if a sharing provider reports the disk: it would be counted twice."""
        conf, disk = self._host.conf, os_resource_classes.DISK_GB
        if self._placement.sharing_with(self._uuid, disk):
            if not self._placement.get_usages(self._uuid).get(disk):
                return {}
            LOG.warning(
                "Host %s has shared storage, but servers hold %s of its own provider: it keeps reporting to Placement its"
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
        """VCPU for shared CPUs, PCPU for dedicated ones, without classes of which the host has nothing."""
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
        """Reports changed claims, so that the scheduler uses them. If this fails, the next report has them."""
        self._try("report its claims", self._report_again)

    def restore_claims(self) -> None:
        """Restores the claims of servers whose files were torn, from the servers' records. At a first start, of all servers.

        A host may have had its guests before: from another compute service, or before its folder was lost.
        """
        host = self._host
        if host.claims.is_unread:
            self._claim_all()
        torn = host.claims.torn()
        if not torn:
            return
        recorded = host.conductor.recorded_claims(admin_context(), host=host.name, instance_uuids=torn)
        for uuid in torn:
            of_server = [each for each in recorded if each.instance.uuid == uuid]
            try:
                host.claims.restore(uuid, [(each.instance, each.migration_uuid) for each in of_server])
            except (errors.ClaimRefused, OSError) as failure:
                LOG.error("Host %s can't restore what server %s holds: %s", host.name, uuid, failure)

    def _claim_all(self) -> None:
        host = self._host
        recorded = host.conductor.recorded_claims(admin_context(), host=host.name, instance_uuids=None)
        for each in recorded:
            try:
                host.claims.adopt(each.instance, each.migration_uuid)
            except errors.ClaimRefused as refusal:
                # Claims of other servers are known all the same, and the audit finds the one that is missing.
                LOG.error("Host %s can't claim what server %s holds: %s", host.name, each.instance.uuid, refusal)
        host.claims.note_read()

    def report_alive(self, *, timeout: float | None = None) -> None:
        """Reports to the cell's conductor, one report at a time, so that none overtakes a newer one.

        ``timeout``: seconds that an answer is waited for; None: as for any call. Raises RpcTimeout.
        """
        with self._reporting:
            self._host.conductor.report_host(admin_context(), report=self._report(), timeout=timeout)

    def report_soon(self) -> None:
        """Reports now. If this fails, the next report says the same."""
        self._try("report", self._report_again)

    def _report_again(self) -> None:
        # A report that is lost, as when the message queue restarts, must not keep the next ones back: the host would seem dead.
        conf = self._host.conf
        self.report_alive(timeout=min(max(conf.report_interval, _LEAST_PATIENCE), conf.rpc_response_timeout))

    def _look_at_folders(self) -> str | None:
        """Why the host can't write into its own folders. The log has it if it is new."""
        before, self._folders_lack = self._folders_lack, why_unwritable(self._host.own_folders)
        if self._folders_lack not in (None, before):
            LOG.error("Host %s is not chosen for guests: %s", self._host.name, self._folders_lack)
        return self._folders_lack

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
            # Where other hosts reach this one: its offers are compared with it.
            host_ip=self._host.conf.my_ip,
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
                "supports_live_migration": self._host.driver.supports_live_migration,
                ATTACHES_PORT_DEVICES: self._host.driver.supports_live_port_devices,
                "stands_still_when_live": self._host.driver.stands_still_when_live,
                LIVE_MIGRATION_LACKS: self._lacks,
                CERTIFICATES_ENDING: None if self._ending is None else [each.report() for each in self._ending],
                FAILED_BUILDS: self._host.failed_builds.count,
                DISK_WORK: self._host.fence.disk_work.count,
                FOLDERS_LACK: self._look_at_folders(),
                OTHER_OWNER: self._host.other_owner,
                STORAGE: self._host.driver.storage(),
                STORES_IMAGES: self._host.driver.stores_images(),
                REQUIRES_SIGNATURES: conf.rpc_signatures.required,
                "supports_migrate_to_same_host": self._host.driver.supports_migrate_to_same_host,
                "supports_saved_memory": self._host.driver.supports_saved_memory,
                "supports_suspended_moves": self._host.driver.supports_suspended_moves,
                "supports_warm_copy": self._host.driver.supports_warm_copy,
            },
        )
        devices = self._host.claims.devices()
        node.numa_topology, node.pci_stats = self._host.claims.topology(), pci_fit.pools(devices)
        return HostReport(
            host=self._host.name, service_version=versions.SERVICE, node=node, guests=guests, pci_devices=devices
        )
