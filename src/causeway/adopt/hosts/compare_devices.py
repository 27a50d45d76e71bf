"""Ports, devices of the host and CPUs of one guest, beside its record."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.adopt.hosts.recorded import RecordedServer
from causeway.model.adoption import Finding
from causeway.model.found_host import FoundGuest

# A port whose device is handed to the guest as it is: the definition does not say its address.
_WITHOUT_ADDRESS = frozenset({"direct-physical"})
_ATTACH = "Detach and attach in Nova what differs, or reboot the server hard in Nova; then import again."


def devices(server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    yield from _refused(server.uuid, guest)
    yield from _ports(server, guest)
    yield from _pci(server, guest)
    yield from _cpus(server, guest)


def _refused(uuid: str, guest: FoundGuest) -> Iterator[Finding]:
    for has, kind, what in (
        (guest.mediated_devices, "vgpu", "a mediated device (vGPU)"),
        (guest.has_persistent_memory, "persistent_memory", "persistent memory"),
        (guest.has_encrypted_memory, "encrypted_memory", "encrypted memory"),
        (guest.shares, "share", "a share of the host's files"),
        (guest.other_host_devices, "host_device", "a device of the host that is not PCI"),
    ):
        if has:
            yield Finding(
                f"unsupported.{kind}",
                uuid,
                f"Its guest has {what}, which Causeway does not have.",
                "Resize it in Nova to a flavor without, or move it to a host that stays with Nova.",
            )


def _ports(server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    here = {each.address.lower() for each in guest.interfaces}
    if len(here) < len(guest.interfaces):
        yield Finding("port.duplicate", server.uuid, "Two interfaces of its guest have one address.", _ATTACH)
    recorded = {each.address.lower(): each for each in server.instance.network_info}
    for address in sorted(recorded.keys() - here):
        port = recorded[address]
        if port.vnic_type not in _WITHOUT_ADDRESS and not server.is_rescued:
            yield Finding("port.missing", server.uuid, f"Its guest lacks port {port.id} ({address}).", _ATTACH)
    for address in sorted(here - recorded.keys()):
        yield Finding("port.unknown", server.uuid, f"Its guest has a port {address} that no record names.", _ATTACH)


def _pci(server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    here = {address.lower() for address in guest.pci_addresses}
    recorded = {device.address.lower() for device in server.instance.pci_devices}
    for address in sorted(recorded - here):
        yield Finding("pci.missing", server.uuid, f"Its guest lacks the device {address}, which it claims.", _ATTACH)
    for address in sorted(here - recorded):
        yield Finding(
            "pci.unknown",
            server.uuid,
            f"Its guest has the device {address}, which it does not claim: it could be given to another one.",
            _ATTACH,
        )


def _cpus(server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    topology = server.instance.numa_topology
    cells = topology.cells if topology is not None else []
    for cpu, host_cpu in sorted(pair for cell in cells for pair in cell.cpu_pinning.items()):
        here = guest.pinned.get(str(cpu), [])
        if here != [host_cpu]:
            yield Finding(
                "numa.differs",
                server.uuid,
                f"Its CPU {cpu} claims CPU {host_cpu} of the host, and its guest is on {here or 'any'}.",
                "Reboot the server hard in Nova; then import again.",
            )
