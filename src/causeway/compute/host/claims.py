"""The claims of servers on a host's dedicated CPUs, NUMA memory and PCI devices.

A claim belongs to a server and to the migration that brought it here (none if it was built here). A moving server has a claim
on each of its hosts, or two on one host. Each ends separately: the source's with confirm, the target's with revert, both with the
server. The claims of a server are one file, which is written before anyone learns of them, so a repeated request after a
crash gets the same answer. Servers that ask for none of these resources have no claims.

A claim is made under the host's lock, which decides between two servers that race for the last CPU.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable, errors
from causeway.hardware import fit, pci_fit
from causeway.hardware.misfit import Misfit
from causeway.model.audit import HostClaim
from causeway.model.instance import Instance, MigrationContext
from causeway.model.numa import InstanceNUMATopology, NUMATopology
from causeway.model.pci import InstancePCIRequest, PciDevice, PciDeviceStatus

LOG = logging.getLogger(__name__)

# The name of their folder.
CLAIMS = "claims"


@dataclass
class Claim:
    """``in_use``: a guest was made with it."""

    migration_uuid: str | None
    numa_topology: InstanceNUMATopology | None = None
    pci_requests: list[InstancePCIRequest] = field(default_factory=list)
    pci_devices: list[PciDevice] = field(default_factory=list)
    in_use: bool = False


@dataclass
class _Claims:
    """The content of a file."""

    claims: list[Claim] = field(default_factory=list)


_DECODER = msgspec.json.Decoder(_Claims)


class Claims:
    """The claims on one host."""

    def __init__(self, directory: Path, host: str, *, limits: fit.Limits) -> None:
        self._directory = directory
        # Is there from a host's first start until it knows what servers hold that were here before.
        self._unread = directory.with_name(f"{directory.name}.unread")
        self._host = host
        self._limits = limits
        self._lock = threading.Lock()
        self._claims: dict[str, list[Claim]] = {}
        # servers whose claims can't be read
        self._torn: set[str] = set()
        self._topology: NUMATopology | None = None
        self._devices: list[PciDevice] = []
        #: called, without the lock, after the claims have changed
        self.on_change: Callable[[], None] = lambda: None

    def load(self, topology: NUMATopology | None, devices: list[PciDevice]) -> None:
        """Sets the host's resources, and reads the claims of earlier processes."""
        self._topology, self._devices = topology, devices
        if not self._directory.exists():
            durable.write(self._unread, b"")
        durable.make_folder(self._directory)
        durable.discard_unfinished(self._directory)
        # A torn file that was not restored since an earlier start still counts.
        self._torn = {path.name.partition(".")[0] for path in self._directory.glob("*.torn*")}
        for path in self._directory.glob("*.json"):
            try:
                found = durable.read(path, _DECODER.decode)
            except durable.Torn:
                self._torn.add(path.stem)
                continue
            self._torn.discard(path.stem)
            self._claims[path.stem] = found.claims if found is not None else []

    def claim(self, instance: Instance, migration_uuid: str | None) -> Claim | None:
        """Claims what the server asks for. Returns the claim, an existing one if there is one; None if it asks for nothing.

        Raises ClaimRefused, and claims nothing, if it does not fit.
        """
        if instance.numa_topology is None and not instance.pci_requests:
            return None
        with self._lock:
            held = self._claims.get(instance.uuid, [])
            known = _of_migration(held, migration_uuid)
            if known is not None:
                return known
            claim = self._try(instance, migration_uuid)
            self._write(instance.uuid, [*held, claim])
        self.on_change()
        return claim

    def check(self, instance: Instance) -> None:
        """Raises ClaimRefused if the server's request does not fit now."""
        if instance.numa_topology is not None or instance.pci_requests:
            with self._lock:
                self._try(instance, None)

    def torn(self) -> list[str]:
        """The servers whose claims are unknown. Until they are restored, no claim can be made."""
        with self._lock:
            return sorted(self._torn)

    @property
    def is_unread(self) -> bool:
        """Whether the host has started for the first time, and does not know yet what its servers hold. No claim can be made."""
        return self._unread.exists()

    def note_read(self) -> None:
        """Notes that all that servers hold here is claimed."""
        durable.delete(self._unread)

    def restore(self, instance_uuid: str, recorded: list[tuple[Instance, str | None]]) -> None:
        """Restores the claims of a torn file from the records of its server, each with the migration that brought it.

        ``recorded``: empty if the server holds nothing here. Raises ClaimRefused if others hold the resources.
        """
        for instance, migration_uuid in recorded:
            self.adopt(instance, migration_uuid)
        with self._lock:
            self._torn.discard(instance_uuid)
            if instance_uuid not in self._claims:
                # There is nothing to write, so the torn file is deleted; else the new file would show the next start that this
                # was done.
                self._delete_torn(instance_uuid)
        LOG.warning("What server %s holds on host %s is claimed again, as its record says", instance_uuid, self._host)

    def _try(self, instance: Instance, migration_uuid: str | None) -> Claim:
        if self._torn or self.is_unread:
            why = f"torn records in {self._directory}" if self._torn else "it asks for them at its first start"
            raise errors.ClaimRefused(
                "The chosen host does not know at present which CPUs and devices its servers hold.",
                details=f"host {self._host}: {why}",
            )
        try:
            return self._fit(instance, migration_uuid)
        except Misfit as misfit:
            raise errors.ClaimRefused(
                f"The chosen host has too little of what server {instance.uuid} needs: {misfit}.",
                details=f"host {self._host}",
            ) from misfit

    def _fit(self, instance: Instance, migration_uuid: str | None) -> Claim:
        devices = self._devices_now()
        requests = instance.pci_requests
        chosen: list[PciDevice] = []

        def near(topology: InstanceNUMATopology) -> None:
            nonlocal chosen
            chosen = pci_fit.take_devices(requests, devices, {cell.id for cell in topology.cells})

        topology = None
        if instance.numa_topology is not None:
            topology = fit.fit(instance.numa_topology, self._topology_now(), self._limits, near)
        else:
            chosen = pci_fit.take_devices(requests, devices, None)
        for device in chosen:
            device.status, device.instance_uuid = PciDeviceStatus.CLAIMED, instance.uuid
        return Claim(migration_uuid, topology, list(requests), chosen)

    def holds(self, instance_uuid: str) -> bool:
        with self._lock:
            return instance_uuid in self._claims

    def use(self, instance: Instance, migration_uuid: str | None) -> Instance:
        """Returns the server with its claim, to make its guest. The claim is in use from now on.

        Raises ClaimsUnknown while the claim is unknown, ClaimRefused if others hold what the server was promised.
        """
        with self._lock:
            if instance.uuid in self._torn:
                raise self._unknown(instance.uuid)
            claim = self._held(instance.uuid, migration_uuid) or self._as_promised(instance, migration_uuid)
            if claim is None:
                # A server that moves here may have held something on its source.
                return dataclasses.replace(instance, numa_topology=None, pci_requests=[], pci_devices=[])
            first_use = not claim.in_use
            if first_use:
                claim.in_use = True
                for device in claim.pci_devices:
                    device.status = PciDeviceStatus.ALLOCATED
                self._write(instance.uuid, self._claims[instance.uuid])
        if first_use and claim.pci_devices:
            self.on_change()
        return dataclasses.replace(
            instance,
            numa_topology=claim.numa_topology,
            pci_requests=claim.pci_requests,
            pci_devices=claim.pci_devices,
        )

    def _unknown(self, instance_uuid: str) -> errors.ClaimsUnknown:
        return errors.ClaimsUnknown(
            f"The host does not know at present which CPUs and devices server {instance_uuid} holds.",
            details=f"host {self._host}: torn record in {self._directory}",
        )

    def _held(self, instance_uuid: str, migration_uuid: str | None) -> Claim | None:
        return _of_migration(self._claims.get(instance_uuid, []), migration_uuid)

    def _as_promised(self, instance: Instance, migration_uuid: str | None) -> Claim | None:
        """Makes the claim of a move again, from what its server's record says was promised here; None if that is nothing.

        The claim was lost: its file was torn or deleted.
        """
        promise = instance.migration_context
        if promise is None or (promise.migration_uuid, promise.dest_host) != (migration_uuid, self._host):
            return None
        promised = dataclasses.replace(
            instance,
            numa_topology=promise.new_numa_topology,
            pci_requests=promise.new_pci_requests,
            pci_devices=promise.new_pci_devices,
        )
        claim = self._adopt(promised, migration_uuid)
        if claim is not None:
            LOG.warning("What server %s was promised on host %s is claimed again", instance.uuid, self._host)
        return claim

    def add_device(self, instance: Instance, request: InstancePCIRequest) -> PciDevice:
        """Claims the device of a port that is being attached. If it was claimed before, returns the same device.

        Raises ClaimRefused if no device is free, ClaimsUnknown while the server's claim is unknown.
        """
        with self._lock:
            if instance.uuid in self._torn:
                raise self._unknown(instance.uuid)
            held = self._claims.get(instance.uuid, [])
            claim = next((each for each in held if each.in_use), None) or (
                held[0] if held else Claim(None, in_use=True)
            )
            known = next((device for device in claim.pci_devices if device.request_id == request.request_id), None)
            if known is not None:
                return known
            device = self._find_device(instance.uuid, request, claim.numa_topology)
            longer = dataclasses.replace(
                claim, pci_requests=[*claim.pci_requests, request], pci_devices=[*claim.pci_devices, device]
            )
            self._write(instance.uuid, [each for each in held if each is not claim] + [longer])
        self.on_change()
        return device

    def _find_device(self, uuid: str, request: InstancePCIRequest, topology: InstanceNUMATopology | None) -> PciDevice:
        cells = None if topology is None else {cell.id for cell in topology.cells}
        try:
            (device,) = pci_fit.take_devices([request], self._devices_now(), cells)
        except Misfit as misfit:
            raise errors.ClaimRefused(
                f"The host of server {uuid} has too little of what the port needs: {misfit}.",
                details=f"host {self._host}",
            ) from misfit
        device.status, device.instance_uuid = PciDeviceStatus.ALLOCATED, uuid
        return device

    def device_of_port(self, instance_uuid: str, port_id: str) -> PciDevice | None:
        """Returns the device that the server holds here for a port; None: it holds none.

        Raises ClaimsUnknown while that is unknown.
        """
        with self._lock:
            if instance_uuid in self._torn:
                raise self._unknown(instance_uuid)
            held = [device for claim in self._claims.get(instance_uuid, []) for device in claim.pci_devices]
        return next((device for device in held if device.request_id == port_id), None)

    def release_device(self, instance_uuid: str, request_id: str) -> None:
        """Releases the device that `add_device` or the server's claim got for a port, if there is one."""
        with self._lock:
            held = self._claims.get(instance_uuid, [])
            if not any(request.request_id == request_id for claim in held for request in claim.pci_requests):
                return
            kept = []
            for claim in held:
                requests = [request for request in claim.pci_requests if request.request_id != request_id]
                devices = [device for device in claim.pci_devices if device.request_id != request_id]
                if claim.numa_topology is not None or requests or devices:
                    kept.append(dataclasses.replace(claim, pci_requests=requests, pci_devices=devices))
            self._write(instance_uuid, kept)
        self.on_change()

    def release(self, instance_uuid: str, migration_uuid: str | None) -> None:
        """Releases the claim of this migration, if there is one."""
        self._keep(instance_uuid, lambda claim: claim.migration_uuid != migration_uuid)

    def release_others(self, instance_uuid: str, migration_uuid: str) -> None:
        """Releases the server's claims, except this migration's."""
        self._keep(instance_uuid, lambda claim: claim.migration_uuid == migration_uuid)

    def release_all(self, instance_uuid: str) -> None:
        self._keep(instance_uuid, lambda claim: False)  # noqa: ARG005

    def _keep(self, instance_uuid: str, wanted: Callable[[Claim], bool]) -> None:
        with self._lock:
            held = self._claims.get(instance_uuid, [])
            kept = [claim for claim in held if wanted(claim)]
            if len(kept) == len(held):
                return
            self._write(instance_uuid, kept)
        self.on_change()

    def adopt(self, instance: Instance, migration_uuid: str | None) -> None:
        """Claims exactly what the server holds here according to its record. Raises ClaimRefused if others hold it."""
        with self._lock:
            if any(claim.migration_uuid == migration_uuid for claim in self._claims.get(instance.uuid, [])):
                return
            adopted = self._adopt(instance, migration_uuid)
        if adopted is not None:
            self.on_change()

    def _adopt(self, instance: Instance, migration_uuid: str | None) -> Claim | None:
        """Returns None if the server holds nothing here, and so has no claim."""
        if instance.numa_topology is None and not instance.pci_devices:
            return None
        cells = self._topology_now().cells if self._topology is not None else []
        free = {cpu for cell in cells for cpu in cell.free_pcpus}
        wanted = {cpu for cell in (instance.numa_topology or NO_CELLS).cells for cpu in cell.held_cpus}
        free_devices = {d.address for d in self._devices_now() if d.status == PciDeviceStatus.AVAILABLE}
        if not wanted <= free or not {device.address for device in instance.pci_devices} <= free_devices:
            raise errors.ClaimRefused(
                f"What server {instance.uuid} should hold is held by others, or does not exist.",
                details=f"host {self._host}",
            )
        # The claim is not in use before its guest is made.
        in_use = all(device.status == PciDeviceStatus.ALLOCATED for device in instance.pci_devices)
        claim = Claim(migration_uuid, instance.numa_topology, instance.pci_requests, instance.pci_devices, in_use)
        self._write(instance.uuid, [*self._claims.get(instance.uuid, []), claim])
        return claim

    # views for others

    def listed(self) -> list[HostClaim]:
        with self._lock:
            return [
                HostClaim(uuid, claim.migration_uuid, claim.numa_topology, [d.address for d in claim.pci_devices])
                for uuid, claims in self._claims.items()
                for claim in claims
            ]

    def topology(self) -> NUMATopology | None:
        """The host's NUMA topology, with what is held."""
        with self._lock:
            return None if self._topology is None else self._topology_now()

    def devices(self) -> list[PciDevice]:
        """The host's PCI devices, with the servers that hold them."""
        with self._lock:
            return self._devices_now()

    def _topology_now(self) -> NUMATopology:
        claimed = [c.numa_topology for held in self._claims.values() for c in held if c.numa_topology is not None]
        return fit.holding(self._topology or NUMATopology(), claimed)

    def _devices_now(self) -> list[PciDevice]:
        held = {device.address: device for claims in self._claims.values() for c in claims for device in c.pci_devices}
        functions = {device.parent_addr for device in held.values()}
        return [
            held.get(device.address)
            or (
                dataclasses.replace(device, status=PciDeviceStatus.UNAVAILABLE)
                if device.address in functions or device.parent_addr in held
                else device
            )
            for device in self._devices
        ]

    def _write(self, instance_uuid: str, claims: list[Claim]) -> None:
        path = self._directory / f"{instance_uuid}.json"
        if claims:
            durable.write(path, msgspec.json.encode(_Claims(claims)))
            self._claims[instance_uuid] = claims
        else:
            durable.delete(path)
            self._delete_torn(instance_uuid)
            self._claims.pop(instance_uuid, None)

    def _delete_torn(self, instance_uuid: str) -> None:
        """Deletes the copy of a torn file.

        Else the next start would still report a claim that was restored and released since.
        """
        for kept in self._directory.glob(f"{instance_uuid}.json.torn*"):
            durable.delete(kept)


NO_CELLS = InstanceNUMATopology()


def _of_migration(held: list[Claim], migration_uuid: str | None) -> Claim | None:
    """The claim of this migration; without a migration, any claim of the server here."""
    if migration_uuid is None:
        return held[0] if held else None
    return next((claim for claim in held if claim.migration_uuid == migration_uuid), None)


def claim_for_move(claims: Claims, instance: Instance, migration_uuid: str, host: str) -> MigrationContext:
    """Claims at the target of a move. Returns what it promises. ``instance`` has the requests of its new flavor."""
    claim = claims.claim(instance, migration_uuid)
    context = MigrationContext(migration_uuid=migration_uuid, dest_host=host)
    if claim is not None:
        context.new_numa_topology = claim.numa_topology
        context.new_pci_requests = instance.pci_requests
        context.new_pci_devices = claim.pci_devices
    return context
