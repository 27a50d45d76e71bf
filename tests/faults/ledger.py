"""The ledger of a storm: what users were answered of one server, and whether that is what is there.

What was accepted must be there, what was refused must not have happened. An answer that was lost (the connection broke, 5xx)
allows both, but nothing between them: records, volumes, ports and the hypervisor's guest must say the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import openstack.exceptions

from causeway.store.api import journal

from . import look
from .site import Site
from .users import Answer, mark

# What a volume or a port passes through on its way.
PASSING = ("attaching", "detaching", "reserved", "creating", "deleting")
EXISTS = ("exists", "")


@dataclass(frozen=True)
class Devices:
    """What one server's user may attach and plug."""

    volumes: tuple[str, ...]
    ports: tuple[str, ...]


@dataclass
class Ledger:
    """``allowed``: (concern, which) -> the values that it may have by now; None: it is not there."""

    uuid: str
    devices: Devices
    allowed: dict[tuple[str, str], set[Any]] = field(default_factory=dict)
    moves: list[tuple[str, Answer]] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    # Lines for who looks for a cause.
    history: list[str] = field(default_factory=list)

    def told(self, concern: str, which: str, value: Any, answer: Answer) -> None:
        """A user asked for this value, and was answered so."""
        self._count(concern, answer, f"{which} = {value}")
        key = (concern, which)
        if answer.is_accepted:
            self.allowed[key] = {value}
        elif answer.is_lost:
            self.allowed.setdefault(key, {None}).add(value)

    def told_of_move(self, operation: str, answer: Answer) -> None:
        self._count(operation, answer, "")
        self.moves.append((operation, answer))

    def may_be(self, concern: str, which: str) -> set[Any]:
        return self.allowed.get((concern, which), {None})

    def _count(self, concern: str, answer: Answer, what: str) -> None:
        kind = "accepted" if answer.is_accepted else "lost" if answer.is_lost else "refused"
        self.answers[f"{concern} {kind}"] += 1
        said = "" if answer.is_accepted else answer.text[:200]
        self.history.append(f"{concern} {what}: {answer.status} {answer.request_id} {said}")


def new_ledger(uuid: str, name: str, devices: Devices) -> Ledger:
    return Ledger(uuid, devices, {EXISTS: {True}, ("name", ""): {name}})


def is_quiet(site: Site, ledger: Ledger) -> bool:
    """Whether nothing of the server is on its way to anywhere."""
    if not look.is_settled(site, ledger.uuid):
        return False
    return not any(site.admin.block_storage.get_volume(volume).status in PASSING for volume in ledger.devices.volumes)


def untrue(site: Site, ledger: Ledger) -> list[str]:
    """What is not as users were answered, or is half done; of a server that is quiet."""
    found = _moves(site, ledger)
    try:
        # As an administrator: users are not told which host it is on.
        server = site.admin.compute.get_server(ledger.uuid)
    except openstack.exceptions.NotFoundException:
        server = None
    if (server is not None) not in ledger.allowed[EXISTS]:
        return [*found, f"not as answered: the server is {'there' if server else 'gone'}"]
    if server is None:
        found += [f"left after it was deleted: {each}" for each in look.remains(site, ledger.uuid)]
        return found + _devices(site, ledger, None, set(), set(), set())
    seen: dict[tuple[str, str], Any] = {("name", ""): server.name}
    seen |= {("metadata", key): value for key, value in server.metadata.items()}
    seen |= {("tag", tag): True for tag in server.tags or ()}
    concerns = {key for key in ledger.allowed if key[0] in ("name", "metadata", "tag")}
    for key in sorted(concerns | set(seen)):
        if seen.get(key) not in ledger.may_be(*key):
            found.append(f"not as answered: {' '.join(key)} is {seen.get(key)}, not {ledger.may_be(*key)}")
    found += look.complaints(site, ledger.uuid, mark(ledger.uuid))
    volumes = {each.volume_id for each in site.member.compute.volume_attachments(ledger.uuid)}
    ports = {each.port_id for each in site.member.compute.server_interfaces(ledger.uuid)}
    return found + _devices(site, ledger, server.compute_host, volumes, ports, _of_guest(site, ledger.uuid))


def _moves(site: Site, ledger: Ledger) -> list[str]:
    begun = {move.request_id for move in journal.of_server(site.api, ledger.uuid)}
    found = []
    for operation, answer in ledger.moves:
        if answer.is_accepted and answer.request_id not in begun:
            found.append(f"answered with {answer.status}, and never begun: {operation} {answer.request_id}")
        if not answer.is_accepted and not answer.is_lost and answer.request_id in begun:
            found.append(f"answered with {answer.status}, and begun: {operation} {answer.request_id}")
    return found


def _of_guest(site: Site, uuid: str) -> set[str]:
    """Volumes and ports that the hypervisor's guest has."""
    return {device for devices in site.guests.devices(uuid).values() for device in devices}


def _devices(
    site: Site, ledger: Ledger, host: str | None, volumes: set[str], ports: set[str], of_guest: set[str]
) -> list[str]:
    """``volumes`` and ``ports``: what the Compute API lists of the server."""
    found = []
    for volume in ledger.devices.volumes:
        listed = volume in volumes
        if host is not None and (True if listed else None) not in ledger.may_be("volume", volume):
            found.append(f"not as answered: volume {volume} is {'attached' if listed else 'detached'}")
        status = site.admin.block_storage.get_volume(volume).status
        if status != ("in-use" if listed else "available"):
            found.append(f"volume {volume} is {status}, and {'' if listed else 'not '}listed")
        if (volume in of_guest) != listed:
            found.append(f"volume {volume} is {'' if listed else 'not '}listed, and the guest disagrees")
    for port in ledger.devices.ports:
        listed = port in ports
        if host is not None and (True if listed else None) not in ledger.may_be("port", port):
            found.append(f"not as answered: port {port} is {'plugged' if listed else 'unplugged'}")
        shown = site.admin.network.find_port(port)
        if shown is None:
            found.append(f"not there any more: port {port} of the user's own")
            continue
        if (shown.device_id, shown.binding_host_id or "") != ((ledger.uuid, host) if listed else ("", "")):
            bound = f"of '{shown.device_id}' on '{shown.binding_host_id}'"
            found.append(f"port {port} is {'' if listed else 'not '}listed, and {bound}")
        if (port in of_guest) != listed:
            found.append(f"port {port} is {'' if listed else 'not '}listed, and the guest disagrees")
    return found
