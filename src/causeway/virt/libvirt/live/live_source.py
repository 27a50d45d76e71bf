"""What the target of a live migration must know of a guest, and whether the target can receive it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from causeway.errors import ClaimRefused, GuestFailed, GuestRefused, HostUnreachable
from causeway.model.instance import Instance
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import VmState
from causeway.virt.driver import ROOT_DISK, allocated_bytes
from causeway.virt.libvirt import power, presence
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.connection import AsideCall, Connection
from causeway.virt.libvirt.guest_xml import foreign_values as values
from causeway.virt.libvirt.guest_xml.migratable_xml import local_disks
from causeway.virt.libvirt.guest_xml.rbd_source import is_in_ceph
from causeway.virt.libvirt.live import live_reach
from causeway.virt.libvirt.live.live_settings import LiveSettings
from causeway.virt.libvirt.storage import qemu_img, saved_memory
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.live_guest import LiveDisk, LiveSource, LiveTarget

HYPERVISOR_TYPE = "QEMU"
# In the details of a source that knows ``blank_disks`` of a target: hosts of earlier releases do not.
_COPIES_WHOLE = "copies_whole"
# In the details of a source that gives a guest the name that it has at its target: hosts of earlier releases keep its name.
_RENAMES = "renames"
# Seconds for a libvirtd to answer.
_REACH_SECONDS = 15.0
MIGRATABLE = libvirt.VIR_DOMAIN_XML_MIGRATABLE | libvirt.VIR_DOMAIN_XML_SECURE


def describe(connection: Connection, disks: InstanceDisks, instance: Instance) -> LiveSource:
    """What the target must know of a guest that runs, or that its user paused or suspended.

    Raises `GuestFailed` for a guest in any other state, and for one that has what can't travel.
    """
    uuid, folder = instance.uuid, disks.folder(instance.uuid)

    def ask_saved(hypervisor: Any) -> tuple[str, dict[str, int], int]:
        xml = saved_memory.describe(hypervisor, disks, uuid)
        if xml is None:
            raise GuestFailed(
                f"The memory of the suspended guest of server {uuid} is not in a file that can be moved. Resume the server, and"
                " suspend it again."
            )
        sizes = {name: qemu_img.virtual_size(path) for name, path in local_disks(xml, folder).items()}
        return xml, sizes, int(hypervisor.getVersion())

    def ask(hypervisor: Any) -> tuple[str, dict[str, int], int]:
        domain = power.find(hypervisor, uuid)
        if domain is None or not presence.of_domain(domain).is_alive:
            raise GuestFailed(f"The guest of server {uuid} does not run.")
        xml = domain.XMLDesc(MIGRATABLE)
        disks_here = local_disks(xml, folder)
        if is_in_ceph(xml):
            sizes = {name: qemu_img.virtual_size(path) for name, path in disks_here.items()}
        else:
            sizes = {name: int(domain.blockInfo(name)[0]) for name in disks_here}
        return xml, sizes, int(hypervisor.getVersion())

    is_suspended = instance.vm_state is VmState.SUSPENDED
    xml, sizes, version = connection.call(f"describe guest {uuid}", ask_saved if is_suspended else ask, again=True)
    domain = ET.fromstring(xml)
    if domain.find("devices/hostdev") is not None:
        raise GuestFailed(f"Server {uuid} has devices of its host, which can't go with it while it runs.")
    shared = disks.offered(uuid)
    bases = bases_of(disks, instance, {path.name for path in local_disks(xml, folder).values()} - shared.keys())
    machine, cpu = domain.find("os/type"), domain.find("cpu")
    return LiveSource(
        hypervisor_type=HYPERVISOR_TYPE,
        hypervisor_version=version,
        disks=[
            LiveDisk(path.name, sizes[name], bases[path.name])
            for name, path in local_disks(xml, folder).items()
            if path.name in bases
        ]
        + [LiveDisk(name, disks.size_in_storage(uuid, name), None, each) for name, each in shared.items()],
        disk_bytes=allocated_bytes(folder),
        details={
            "virt_type": domain.get("type", "qemu"),
            "arch": "x86_64" if machine is None else machine.get("arch", "x86_64"),
            "machine": None if machine is None else machine.get("machine"),
            "cpu": None if cpu is None else ET.tostring(cpu, encoding="unicode"),
            "uuid": uuid,
            "name": domain.findtext("name"),
            _COPIES_WHOLE: True,
            _RENAMES: True,
        },
    )


def must_be_whole(disks: InstanceDisks, instance: Instance, names: Iterable[str]) -> bool:
    """Whether all of these disks must be copied: one stands on a file of which nobody knows what image it is."""
    return any(disks.stands_on_unknown(instance.uuid, name, instance.image_ref) for name in names)


def bases_of(disks: InstanceDisks, instance: Instance, names: Collection[str]) -> dict[str, str | None]:
    """Name -> the id of the image below a disk, which its copy stands on; None: its copy stands alone."""
    found: dict[str, str | None] = dict.fromkeys(names)
    if ROOT_DISK in found and not must_be_whole(disks, instance, names):
        found[ROOT_DISK] = disks.base_image_of(instance.uuid, instance.image_ref)
    return found


def check_target(connection: Connection, source: LiveSource, *, virt_type: str, room: int) -> None:
    """Raises `ClaimRefused` if this host can't receive the guest. ``virt_type``: how guests run here. ``room``: bytes free."""
    if source.hypervisor_type != HYPERVISOR_TYPE:
        raise ClaimRefused("The hosts have different hypervisors.", details=f"{source.hypervisor_type} at the source")
    wanted = str(source.details.get("virt_type") or "qemu")
    if wanted == "kvm" and virt_type != "kvm":
        raise ClaimRefused("The host can't run guests with KVM, which the server's guest uses.")
    if room < source.disk_bytes:
        raise ClaimRefused("The host has no room for the server's disks.", details=f"{source.disk_bytes} bytes")

    def ask(hypervisor: Any) -> None:
        version = int(hypervisor.getVersion())
        if version < source.hypervisor_version:
            raise ClaimRefused(
                "The host's hypervisor is older than that which the server's guest runs on.",
                details=f"{version}, and {source.hypervisor_version} at the source",
            )
        _check_machine(hypervisor, wanted, source.details)

    connection.call("say what it can receive", ask, again=True)


def check_copies(source: LiveSource, reaches: Callable[[dict[str, SharedDisk]], bool]) -> None:
    """Raises `ClaimRefused` if the source would leave out what base images have. For a host where copies stand on none."""
    stays = bool(source.shared) and reaches(source.shared)
    if source.disks and not stays and not source.details.get(_COPIES_WHOLE):
        raise ClaimRefused("The server's host is of a release that can't copy disks into the storage of this host.")


def check_name(connection: Connection, source: LiveSource) -> None:
    """Raises `ClaimRefused` if another guest has the name of this one, which keeps it. Hosts of 0.1.0 do not say the name."""
    name = source.details.get("name")
    if not name or source.details.get(_RENAMES):
        return

    def ask(hypervisor: Any) -> str | None:
        return power.holder_of(hypervisor, str(name))

    if connection.call("say whose a name is", ask, again=True) not in (None, source.details.get("uuid")):
        raise ClaimRefused(
            "Another guest of the host has the name of the server's guest, and the release of the server's host can't change it.",
            details=str(name)[:200],
        )


def check_reachable(control_uri: str) -> None:
    """Raises `ClaimRefused` if other hosts can't reach this libvirtd: it does not listen, or its certificates are bad."""
    call = AsideCall(control_uri, lambda hypervisor: hypervisor.getVersion())
    call.start()
    if not call.ended.wait(_REACH_SECONDS) or call.error is not None:
        raise ClaimRefused(
            "The hypervisor of the host can't be reached by those of other hosts.",
            details=f"{control_uri}: {call.error or 'no answer'}",
        )


def check_reaches(settings: LiveSettings, target: LiveTarget) -> None:
    """Raises `HostUnreachable` if this host's hypervisor can't reach the one at ``target``."""
    port = str(target.details["port"])
    if not port.isascii() or not port.isdigit() or len(port) > len("65535"):
        raise HostUnreachable("The chosen host names a port for live migrations that is none.", details=port[:100])
    where = settings.uri_of(target.address), target.address, port
    try:
        run(*settings.inside(), sys.executable, "-I", live_reach.__file__, *where, timeout=_REACH_SECONDS)
    except GuestFailed as failure:
        raise HostUnreachable(
            "The hypervisor of the chosen host can't be reached by that of the server's host.", details=failure.details
        ) from failure


def _check_machine(hypervisor: Any, virt_type: str, details: dict[str, Any]) -> None:
    arch, machine, cpu = _described(details)
    try:
        hypervisor.getDomainCapabilities(None, arch, machine, virt_type)
    except libvirt.libvirtError as error:
        raise ClaimRefused(
            "The host does not have the machine type of the server's guest.", details=str(error)
        ) from error
    # Emulated processors are the same on all hosts.
    if virt_type != "kvm" or cpu is None:
        return
    try:
        compared = hypervisor.compareHypervisorCPU(None, arch, machine, virt_type, cpu, 0)
    except libvirt.libvirtError as error:
        raise ClaimRefused(
            "The host could not check whether its processor suits the guest.", details=str(error)
        ) from error
    if compared not in (libvirt.VIR_CPU_COMPARE_IDENTICAL, libvirt.VIR_CPU_COMPARE_SUPERSET):
        raise ClaimRefused("The host's processor lacks what the server's guest was started with.", details=str(cpu))


def _described(details: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """Architecture, machine type and CPU (as XML; None: it has no model), as another host says. Raises `ClaimRefused`."""
    arch, machine, cpu = str(details.get("arch") or "x86_64"), details.get("machine"), details.get("cpu")
    try:
        values.matched(arch, "[a-z0-9_]{1,32}", "an architecture")
        described = None if not cpu else values.cpu(values.parse(str(cpu)))
        has_model = described is not None and described.find("model") is not None
        return (
            arch,
            None if machine is None else values.machine(str(machine)),
            ET.tostring(described, encoding="unicode") if described is not None and has_model else None,
        )
    except GuestRefused as refusal:
        raise ClaimRefused(refusal.message, details=refusal.details) from refusal
