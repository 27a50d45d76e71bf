"""Where what is found on a host differs from the records. Equal ones give no finding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from causeway.adopt.hosts import compare_devices, compare_disks
from causeway.adopt.hosts.recorded import RecordedHost, RecordedServer
from causeway.model.adoption import Finding
from causeway.model.found_host import FoundGuest, FoundHost
from causeway.model.states import PowerState, VmState

# The names that Nova gives unless instance_name_template says otherwise.
_NOVAS_NAME = re.compile(r"instance-[0-9a-f]{8,}")
_OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.SUSPENDED, PowerState.NOSTATE})
# Servers that may have no guest.
_WITHOUT_GUEST = frozenset({VmState.ERROR, VmState.BUILDING})
_IMPORT_AGAIN = "If the host is right, import the records again; else correct it in Nova first."


def compare(found: FoundHost, recorded: RecordedHost) -> list[Finding]:
    """All differences, those of the host first. It asks nobody and changes nothing."""
    findings = [*_identity(found, recorded), *compare_disks.mounts(found.hypervisor, recorded)]
    known = {server.uuid for server in recorded.servers}
    by_uuid: dict[str, list[FoundGuest]] = {}
    for guest in found.hypervisor.guests:
        by_uuid.setdefault(guest.uuid, []).append(guest)
    for server in sorted(recorded.servers, key=lambda each: each.uuid):
        findings += _server(found, server, by_uuid.get(server.uuid, []))
    for uuid in sorted(by_uuid.keys() - known):
        findings += _unknown(by_uuid[uuid][0])
    findings += compare_disks.folders(found.hypervisor, known)
    return findings


def running(found: FoundHost) -> list[Finding]:
    """Whether Nova still owns the host: what stands in the way of taking it at this moment, beside differences."""
    return [
        Finding(
            "nova.runs",
            found.host,
            f"nova-compute runs: process {process.pid} ({process.command}).",
            "Stop nova-compute on this host, and disable its unit.",
        )
        for process in found.processes
    ]


def _identity(found: FoundHost, recorded: RecordedHost) -> Iterator[Finding]:
    host = found.host
    if found.host != recorded.host:
        yield Finding(
            "host.name",
            recorded.host,
            f"It calls itself {found.host}.",
            "Set [DEFAULT] host of its compute service to the name that it has in Nova.",
        )
    if recorded.node_uuid is None:
        yield Finding("node.unknown", host, "No compute node of this host is recorded.", "Import Nova's records again.")
        return
    if not found.identities:
        yield Finding(
            "identity.missing",
            host,
            "There is no file compute_id of Nova.",
            "Set [adopt] nova_state_path to Nova's state_path. A Nova before 2023.1 must be upgraded first.",
        )
    for identity in found.identities:
        if identity.uuid != recorded.node_uuid:
            yield Finding(
                "identity.differs",
                host,
                f"{identity.path} has {identity.uuid or 'no uuid'}, the compute node is {recorded.node_uuid}.",
                "Find out which of them Placement has as the provider of this host, before anything is started here.",
            )
    named = recorded.hypervisor_hostname
    if named and named != recorded.host:
        yield Finding(
            "hypervisor.renamed",
            host,
            f"Nova calls its hypervisor {named}.",
            f"Here it is called {recorded.host}, also in lists of hypervisors and in servers that move.",
            blocks=False,
        )
    if named and found.hypervisor.hostname and found.hypervisor.hostname != named:
        yield Finding(
            "hypervisor.name",
            host,
            f"The hypervisor calls itself {found.hypervisor.hostname}; {named} is recorded.",
            "Look whether this is the host that is meant.",
        )


def _server(found: FoundHost, server: RecordedServer, guests: list[FoundGuest]) -> Iterator[Finding]:
    uuid, instance = server.uuid, server.instance
    if instance.task_state is not None or instance.vm_state in (VmState.BUILDING, VmState.RESIZED):
        state = instance.task_state or instance.vm_state
        yield Finding(
            "server.unsettled",
            uuid,
            f"Its state is {state}: something is under way, or waits to be confirmed.",
            "Wait for its end, confirm or revert its resize, or reset its state, in Nova; then import again.",
        )
    if not guests:
        yield _without_guest(server)
        return
    if len(guests) > 1:
        yield Finding("guest.duplicate", uuid, f"The host shows {len(guests)} guests of it.", "Look at them.")
        return
    (guest,) = guests
    if guest.lack:
        yield Finding("guest.unreadable", uuid, f"Its guest can't be read: {guest.lack}.", "Look at its definition.")
        return
    yield from _guest(server, guest)
    yield from compare_disks.disks(found.hypervisor, server, guest)
    yield from compare_devices.devices(server, guest)


def _without_guest(server: RecordedServer) -> Finding:
    may_be = server.instance.vm_state in _WITHOUT_GUEST
    return Finding(
        "guest.missing",
        server.uuid,
        f"Its state is {server.instance.vm_state}, and the host has no guest of it.",
        "" if may_be else "Find its guest, or have Nova make it again (hard reboot); then import again.",
        blocks=not may_be,
    )


def _guest(server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    uuid, instance = server.uuid, server.instance
    if instance.guest_name is not None and guest.name != instance.guest_name:
        yield Finding(
            "guest.name",
            uuid,
            f"Its guest is called {guest.name}; {instance.guest_name} is recorded.",
            "It keeps its name here, and gets the recorded one on another host.",
            blocks=False,
        )
    if not guest.is_persistent:
        yield Finding(
            "guest.transient",
            uuid,
            "Its guest has no lasting definition: it is gone when it stops, or it is just arriving.",
            "Wait for the end of its live migration; else reboot it hard in Nova.",
        )
    yield from _power(server, guest)
    if instance.vm_state is VmState.SUSPENDED and not guest.has_saved_memory:
        yield Finding(
            "memory.missing",
            uuid,
            "It is suspended, and the hypervisor has no memory of its guest.",
            "A resume boots it, here as in Nova.",
            blocks=False,
        )
    if guest.starts_by_itself:
        yield Finding(
            "guest.autostart",
            uuid,
            "Its guest starts with its host, whatever its record says.",
            "virsh autostart --disable, unless it is wanted.",
            blocks=False,
        )


def _power(server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    was, now = server.instance.power_state, guest.power_state
    if was in _OFF and server.instance.vm_state in (VmState.ACTIVE, VmState.RESCUED):
        # Nova had not noticed yet that it was started or stopped.
        was = PowerState.RUNNING
    if was == now or (was in _OFF and now in _OFF):
        return
    if now in _OFF:
        yield Finding(
            "power.stopped",
            server.uuid,
            "Its guest is off, and is recorded as running.",
            "It is recorded as stopped after the host was taken.",
            blocks=False,
        )
        return
    yield Finding(
        "power.differs",
        server.uuid,
        f"Its guest is {now.name.lower()}; {was.name.lower()} is recorded, and would be restored.",
        "Let Nova notice it (sync_power_state_interval), or start, stop or unpause the server in Nova; then import again.",
    )


def _unknown(guest: FoundGuest) -> Iterator[Finding]:
    is_novas = guest.is_novas or _NOVAS_NAME.fullmatch(guest.name) is not None
    yield Finding(
        "guest.unknown" if is_novas else "guest.foreign",
        guest.uuid,
        f"The host has a guest {guest.name} that no record names"
        + (", and Nova made it." if is_novas else "; Nova did not make it."),
        _IMPORT_AGAIN if is_novas else "`causeway audit` will list it as orphaned, and leaves it alone.",
        blocks=is_novas,
    )


def repeated(findings: list[Finding]) -> Counter[str]:
    """How often each kind of finding is there."""
    return Counter(finding.kind for finding in findings)
