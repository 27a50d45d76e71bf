"""Hypervisors: each server has exactly one guest, on its host, which runs if the server does."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import Record, ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.pci import PciDeviceType
from causeway.model.states import PowerState, VmState

UNTOUCHED = "A guest is never stopped or removed by an audit: look at it first."
WITH_GUEST = frozenset(
    {
        VmState.ACTIVE,
        VmState.STOPPED,
        VmState.RESIZED,
        VmState.PAUSED,
        VmState.SUSPENDED,
        VmState.RESCUED,
        VmState.SHELVED,
    }
)
# The guests of these must be off. A shelved server has a guest until it is offloaded.
OFF = frozenset({VmState.STOPPED, VmState.SHELVED})
# Alive: it may write to its disks.
ALIVE = frozenset({PowerState.RUNNING, PowerState.PAUSED})


def _by_server(snapshot: Snapshot) -> dict[str, dict[str, PowerState]]:
    """server -> host -> power state."""
    found: dict[str, dict[str, PowerState]] = {}
    for host in snapshot.hosts.values():
        for uuid, power_state in (host.contents.guests if host.contents is not None else {}).items():
            found.setdefault(uuid, {})[host.name] = power_state
    return found


def running_twice(snapshot: Snapshot) -> Iterator[Disagreement]:
    for uuid, places in _by_server(snapshot).items():
        # A guest that is being migrated is shown at both ends, at one of them paused.
        wanted = {PowerState.RUNNING} if uuid in snapshot.live else ALIVE
        alive = sorted(host for host, power_state in places.items() if power_state in wanted)
        if len(alive) > 1:
            yield Disagreement(
                "guest.running_twice",
                Severity.CRITICAL,
                "guest on " + ", ".join(alive),
                uuid,
                f"The server's guest runs on {len(alive)} hosts at once: {', '.join(alive)}.",
                left="Which of them is the right one must be found out first. " + UNTOUCHED,
            )


def elsewhere(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Guests on hosts other than the server's, and than those of its move."""
    for uuid, places in _by_server(snapshot).items():
        standing = snapshot.standing(uuid)
        if standing is ServerStanding.UNSEEN:
            continue
        allowed = snapshot.may_hold(uuid)
        home = snapshot.home(uuid)
        for host, power_state in places.items():
            if host in allowed:
                continue
            runs = power_state in ALIVE
            where = f"its server is on {home.host}" if home is not None else "there is no such server"
            if standing is ServerStanding.DELETED:
                where = "its server is deleted"
            yield Disagreement(
                "guest.unknown" if standing is ServerStanding.UNKNOWN else "guest.orphaned",
                Severity.CRITICAL if runs and standing is ServerStanding.LIVE else Severity.ERROR,
                f"guest on {host}",
                None if standing is ServerStanding.UNKNOWN else uuid,
                f"{host} has a guest {uuid} ({power_state.name.lower()}), but {where}.",
                left=UNTOUCHED,
            )
    yield from _at_source(snapshot)


def _at_source(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Guests at the source of a finished move, which should only have disks."""
    for home in snapshot.homes:
        waiting = snapshot.waiting(home.uuid)
        if waiting is None or waiting.source_host == home.host:
            continue
        contents = snapshot.contents_of(waiting.source_host)
        if contents is not None and home.uuid in contents.guests:
            yield Disagreement(
                "guest.orphaned",
                Severity.CRITICAL if contents.guests[home.uuid] in ALIVE else Severity.ERROR,
                f"guest on {waiting.source_host}",
                home.uuid,
                f"The server was moved to {home.host}, but {waiting.source_host} still has a guest of it.",
                left=UNTOUCHED,
            )


def _expected_here(snapshot: Snapshot) -> Iterator[tuple[Record, dict[str, PowerState]]]:
    """Servers at rest that must have a guest, with the guests of their host."""
    for record in snapshot.homes:
        contents = snapshot.contents_of(record.host)
        if contents is not None and record.vm_state in WITH_GUEST and snapshot.is_quiet(record):
            yield record, contents.guests


def missing(snapshot: Snapshot) -> Iterator[Disagreement]:
    for record, guests in _expected_here(snapshot):
        if record.uuid not in guests:
            yield Disagreement(
                "guest.missing",
                Severity.CRITICAL if record.vm_state not in OFF else Severity.ERROR,
                f"guest on {record.host}",
                record.uuid,
                f"The server is {record.vm_state} on {record.host}, which has no guest of it.",
                left="A hard reboot makes the guest anew from its disks.",
            )


def power_states(snapshot: Snapshot) -> Iterator[Disagreement]:
    for record, guests in _expected_here(snapshot):
        actual = guests.get(record.uuid)
        if (
            actual is None
            or actual is PowerState.NOSTATE
            or (record.vm_state is VmState.RESIZED and actual is record.power_state)
        ):
            continue
        wrong = (record.vm_state in OFF and actual in ALIVE) or (
            record.vm_state in (VmState.ACTIVE, VmState.RESIZED)
            and actual is not PowerState.RUNNING
            and not (record.vm_state is VmState.RESIZED and record.old_vm_state is VmState.STOPPED)
        )
        if wrong:
            yield Disagreement(
                "guest.power_state",
                Severity.WARNING,
                f"guest on {record.host}",
                record.uuid,
                f"The server is {record.vm_state}, its guest on {record.host} is {actual.name.lower()}.",
                left="The next reports of the host bring the record up to date; else stop or start the server.",
            )


def port_devices(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports that are devices of the host, and that a running guest does not have: a migration could not attach them again."""
    for home in snapshot.homes:
        contents = snapshot.contents_of(home.host)
        if home.vm_state is not VmState.ACTIVE or not snapshot.is_at_rest(home) or contents is None:
            continue
        if contents.port_devices is None or contents.guests.get(home.uuid) is not PowerState.RUNNING:
            continue
        in_guest = contents.port_devices.get(home.uuid)
        for device in home.pci_devices:
            port = (snapshot.ports or {}).get(device.request_id or "")
            if port is None or device.request_id not in home.port_ids or device.dev_type == PciDeviceType.SRIOV_PF:
                continue
            if in_guest is None or port["mac_address"].lower() in in_guest:
                continue
            yield Disagreement(
                "port.detached",
                Severity.ERROR,
                f"port {device.request_id} on {home.host}",
                home.uuid,
                f"The guest does not have port {device.request_id}, for which its server holds PCI device {device.address} of"
                f" {home.host}.",
                Fix("attach_ports", {"uuid": home.uuid}),
            )
