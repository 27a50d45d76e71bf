"""Network service: a running guest's port is wired, and no port says that its guest is going anywhere when it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from causeway.audit.checks.bindings import ACTIVE, of_servers
from causeway.audit.snapshot import Record, Snapshot
from causeway.clients.network_migrations import MIGRATING_TO
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.states import PowerState


def announced(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports whose active binding names the target of a live migration that is not under way."""
    for port_id, home, bindings in of_servers(snapshot):
        if not snapshot.is_quiet(home):
            continue
        for binding in bindings:
            target = binding.profile.get(MIGRATING_TO)
            if binding.status != ACTIVE or target is None:
                continue
            yield Disagreement(
                "binding.announcement",
                Severity.WARNING,
                f"port {port_id} on {binding.host}",
                home.uuid,
                f"The profile of port {port_id} says that its guest is going to {target}, and no live migration is under way.",
                Fix("undo_announcement", {"port_id": port_id, "host": str(target)}),
            )


def down(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Ports that are down for some time, although their server's guest runs and they are bound to its host."""
    for record in snapshot.homes:
        if record.power_state is not PowerState.RUNNING or not snapshot.is_quiet(record):
            continue
        for port_id in record.port_ids:
            port = (snapshot.ports or {}).get(port_id)
            if port is not None and _is_down(port, record) and snapshot.is_old(_changed_at(port)):
                yield Disagreement(
                    "port.down",
                    Severity.WARNING,
                    f"port {port_id} on {record.host}",
                    record.uuid,
                    f"Port {port_id} is {port['status']}, although its guest runs on {record.host}.",
                    left="Look at the network service's agent or controller on the host. With OVN, Neutron may leave a port down"
                    " whose live migration was rolled back, although it works: `openstack port set --disable` and `--enable`"
                    " correct that, and interrupt its traffic for a moment.",
                )


def _is_down(port: Mapping[str, Any], record: Record) -> bool:
    return (
        port["status"] != ACTIVE
        and port.get("admin_state_up") is not False
        and port["device_id"] == record.uuid
        and port.get("binding:host_id") == record.host
    )


def _changed_at(port: Mapping[str, Any]) -> datetime | None:
    """When the port was changed last, in UTC; None if the service does not say."""
    text = port.get("updated_at")
    return datetime.fromisoformat(str(text)).replace(tzinfo=None) if text else None
