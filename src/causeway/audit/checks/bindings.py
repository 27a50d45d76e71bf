"""Network service: a port is bound to the hosts where its server is, and to those its move needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from causeway.audit.snapshot import Record, ServerStanding, Snapshot
from causeway.clients.network import PortBinding
from causeway.clients.port_owners import PortOwner
from causeway.hardware.port_devices import profile_of, with_device
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.states import VmState

ACTIVE = "ACTIVE"
# Servers in these states have ports in use on their host.
WITH_GUEST = frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.RESIZED, VmState.PAUSED, VmState.SUSPENDED})


def of_servers(snapshot: Snapshot) -> Iterator[tuple[str, Record, list[PortBinding]]]:
    """(port, its server, its bindings) for every port whose bindings are known."""
    for port_id, bindings in snapshot.bindings.items():
        port = (snapshot.ports or {})[port_id]
        home = snapshot.home(port["device_id"])
        if home is not None and _is_of(home, port):
            yield port_id, home, bindings


def _is_of(home: Record, port: Mapping[str, Any]) -> bool:
    """Not a stranger's, which `causeway.audit.checks.owners` reports."""
    return PortOwner(home.uuid, home.project_id, frozenset(home.port_ids)).has(port)


def elsewhere(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Bindings for hosts other than the server's, and than those of its move."""
    for port_id, home, bindings in of_servers(snapshot):
        movement = snapshot.movement(home.uuid)
        if home.task_state is not None and movement is None:
            continue
        allowed = snapshot.may_hold(home.uuid)
        own = next((binding for binding in bindings if binding.host == home.host), None)
        for binding in bindings:
            if not binding.host or binding.host in allowed:
                continue
            removable = binding.status != ACTIVE or (own is not None and own.status == ACTIVE)
            yield Disagreement(
                "binding.orphaned",
                Severity.WARNING if removable else Severity.ERROR,
                f"port {port_id} on {binding.host}",
                home.uuid,
                f"Port {port_id} has a binding ({binding.status.lower()}) for {binding.host}; its server is on {home.host}.",
                Fix("delete_binding", {"port_id": port_id, "host": binding.host}) if removable else None,
                left=""
                if removable
                else "It is the port's active binding: the port needs one on the server's host first.",
            )


def missing(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports without an active binding on the server's host, or without one at the source of a move that may be reverted."""
    for port_id, home, bindings in of_servers(snapshot):
        if home.host is None or home.vm_state not in WITH_GUEST or not snapshot.is_quiet(home):
            continue
        if port_id not in home.port_ids:
            # It is being attached or detached.
            continue
        own = next((binding for binding in bindings if binding.host == home.host), None)
        if own is None or own.status != ACTIVE:
            yield Disagreement(
                "binding.missing",
                Severity.ERROR,
                f"port {port_id} on {home.host}",
                home.uuid,
                f"Port {port_id} is not bound to {home.host}, where its server is"
                + ("." if own is None else ": the binding is there, but not active."),
                None if own is None else Fix("activate_binding", {"port_id": port_id, "host": home.host}),
                left="Detach the port and attach it again." if own is None else "",
            )
        waiting = snapshot.waiting(home.uuid)
        if waiting is None or port_id not in waiting.memory.port_ids:
            continue
        if waiting.source_host not in {binding.host for binding in bindings} and not (own and own.must_be_alone):
            yield Disagreement(
                "binding.missing",
                Severity.ERROR,
                f"port {port_id} on {waiting.source_host}",
                home.uuid,
                f"Port {port_id} has no binding for {waiting.source_host}: the resize can't be reverted.",
                Fix(
                    "create_binding",
                    {"port_id": port_id, "host": waiting.source_host} | _with_device(home, port_id, own),
                ),
            )


def _with_device(home: Record, port_id: str, own: PortBinding | None) -> dict[str, Any]:
    """More arguments for the binding of a port to its former host: the device that is kept for it there."""
    kept = home.migration_context.old_pci_devices if home.migration_context is not None else []
    device = next((device for device in kept if device.request_id == port_id), None)
    if device is None or own is None:
        return {}
    return {"vnic_type": own.vnic_type, "profile": with_device(own.profile, device)}


def devices(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Bindings to the server's host that name another device than the one that the server holds for the port."""
    for port_id, home, bindings in of_servers(snapshot):
        if home.host is None or home.vm_state not in WITH_GUEST or not snapshot.is_quiet(home):
            continue
        device = next((device for device in home.pci_devices if device.request_id == port_id), None)
        own = next((binding for binding in bindings if binding.host == home.host and binding.status == ACTIVE), None)
        if device is None or own is None or own.profile.get("pci_slot") == device.address:
            continue
        yield Disagreement(
            "binding.device",
            Severity.ERROR,
            f"port {port_id} on {home.host}",
            home.uuid,
            f"The server has PCI device {device.address} of {home.host} for port {port_id}; its binding names"
            f" {own.profile.get('pci_slot') or 'none'}.",
            Fix("name_device", {"port_id": port_id, "host": home.host, "profile": profile_of(device)}),
        )


def ports_missing(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports that the server's record names, but that are not the server's in the network service."""
    for record in snapshot.homes:
        if not snapshot.is_quiet(record):
            continue
        for port_id in record.port_ids:
            port = (snapshot.ports or {}).get(port_id)
            if port is None or port["device_id"] != record.uuid:
                yield Disagreement(
                    "port.missing",
                    Severity.ERROR,
                    f"port {port_id}",
                    record.uuid,
                    f"The server has port {port_id}, which the network service does not have for it.",
                    left="Detach it. The server's user decides whether it needs another port.",
                )


def ports_unknown(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports that the network service has for a server whose record does not name them."""
    for port_id, port in (snapshot.ports or {}).items():
        home = snapshot.home(port["device_id"])
        if home is None or port_id in home.port_ids or not _is_of(home, port) or not snapshot.is_at_rest(home):
            continue
        if home.vm_state in (VmState.BUILDING, VmState.ERROR):
            # The port of an interrupted build is deleted with its server.
            continue
        yield Disagreement(
            "port.unknown",
            Severity.ERROR,
            f"port {port_id}",
            home.uuid,
            f"Port {port_id} belongs to the server, whose record does not have it: a move would leave it behind.",
            left="The server's user decides whether it needs the port: delete it, or detach it and attach it again.",
        )


def ports_orphaned(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports of deleted servers. (Those of uuids that this cloud does not know may be another cloud's.)"""
    for port_id, port in (snapshot.ports or {}).items():
        server = port["device_id"]
        if snapshot.standing(server) is ServerStanding.DELETED:
            yield Disagreement(
                "port.orphaned",
                Severity.WARNING,
                f"port {port_id}",
                server,
                f"Port {port_id} belongs to a server that is deleted.",
                left="A user may have made the port, and may want to keep its address.",
            )
