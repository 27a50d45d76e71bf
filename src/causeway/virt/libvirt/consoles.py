"""Consoles of guests: a screen by VNC, and a serial console on a TCP port. Whoever reaches these ports needs no password.

libvirt chooses the VNC ports. The port of a serial console is chosen here: one that is free, and that no guest's definition has.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from oslo_config import cfg

from causeway.errors import ConsoleTypeUnavailable, GuestFailed
from causeway.model.console import ConsoleType
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection


@dataclass
class ConsoleSettings:
    """``vnc_listen``, ``serial``: addresses at which guests listen; None: guests have no such console.

    ``vnc_address``: the address at which proxies reach the screens. ``ports``: first and last TCP port of serial consoles.
    """

    vnc_listen: str | None = None
    vnc_address: str = "127.0.0.1"
    serial: str | None = None
    ports: tuple[int, int] = (10000, 20000)


def from_options(conf: cfg.ConfigOpts) -> ConsoleSettings:
    first, _, last = conf.serial_console.port_range.partition(":")
    return ConsoleSettings(
        vnc_listen=conf.vnc.server_listen if conf.vnc.enabled else None,
        vnc_address=conf.vnc.server_proxyclient_address,
        serial=conf.serial_console.proxyclient_address if conf.serial_console.enabled else None,
        ports=(int(first), int(last)),
    )


class SerialPorts:
    """Chooses the TCP ports of serial consoles."""

    def __init__(self, connection: Connection, ports: tuple[int, int]) -> None:
        self._connection, self._ports = connection, ports
        self._lock = threading.Lock()
        # uuid -> port, also for guests whose definition libvirt does not have yet
        self._chosen: dict[str, int] = {}

    def port_for(self, uuid: str, address: str) -> int:
        """The port that the guest has or will have. Raises `ConsoleTypeUnavailable` if all are used."""
        with self._lock:
            taken = self._connection.call("list the ports of its guests", _ports_of_all, again=True)
            taken = self._chosen | taken
            if uuid not in taken:
                others = set(taken.values())
                taken[uuid] = _free(
                    address, (port for port in range(self._ports[0], self._ports[1] + 1) if port not in others)
                )
            self._chosen[uuid] = taken[uuid]
            return taken[uuid]

    def release(self, uuid: str) -> None:
        """Frees the port of a guest that was destroyed."""
        with self._lock:
            self._chosen.pop(uuid, None)


def listener(connection: Connection, settings: ConsoleSettings, uuid: str, kind: ConsoleType) -> tuple[str, int]:
    """See `InsideMethods.console_listener`."""

    def look(hypervisor: Any) -> str | None:
        domain = power.find(hypervisor, uuid)
        return None if domain is None or power.power_state_of(domain) in power.OFF else str(domain.XMLDesc())

    xml = connection.call(f"list the consoles of guest {uuid}", look, again=True)
    if xml is None:
        raise GuestFailed(f"The guest of server {uuid} does not run.")
    if kind is ConsoleType.NOVNC:
        port, address = vnc_port(xml), settings.vnc_address
    else:
        port, address = serial_port(xml), settings.serial or "127.0.0.1"
    if port is None:
        raise ConsoleTypeUnavailable.of(kind.value, "The guest has it from its next start on (a hard reboot).")
    return address, port


def vnc_port(xml: str) -> int | None:
    """The port at which a guest's screen listens; None: it has none."""
    graphics = ET.fromstring(xml).find("devices/graphics[@type='vnc']")
    port = int(graphics.get("port", "-1")) if graphics is not None else -1
    return port if port > 0 else None


def serial_port(xml: str) -> int | None:
    """The port at which a guest's serial console listens; None: it has none."""
    source = ET.fromstring(xml).find("devices/serial[@type='tcp']/source")
    return int(source.get("service", "0")) or None if source is not None else None


def _ports_of_all(hypervisor: Any) -> dict[str, int]:
    found = {}
    for domain in hypervisor.listAllDomains():
        port = serial_port(domain.XMLDesc())
        if port is not None:
            found[str(domain.UUIDString())] = port
    return found


def _free(address: str, ports: Iterable[int]) -> int:
    for port in ports:
        try:
            with socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
                return port
        except OSError:
            # Another program listens there.
            continue
    raise ConsoleTypeUnavailable.of(
        ConsoleType.SERIAL.value, "All ports for it are used ([serial_console] port_range)."
    )
