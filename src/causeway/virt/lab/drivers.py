"""The driver of a lab host."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from causeway.model.console import ConsoleType
from causeway.virt.lab.hosts import LibvirtEndpoint
from causeway.virt.libvirt.capabilities.host import HostLimits
from causeway.virt.libvirt.consoles import ConsoleSettings
from causeway.virt.libvirt.driver import LibvirtDriver
from causeway.virt.libvirt.live.live_settings import LiveSettings
from causeway.virt.libvirt.storage.disk_pools import DiskPool

_LOOPBACK = "127.0.0.1"
_END_SECONDS = 10


@dataclass
class _Forwarder:
    """``inside``: the TCP port in the host's network. ``outside``: the port in the machine's own network."""

    inside: int
    outside: int
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        """It ends with its standard input."""
        try:
            self.process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()


class LabDriver(LibvirtDriver):
    """A libvirt driver whose guests' consoles can be reached from the machine's own network, where console proxies are."""

    def __init__(self, namespace: str, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._namespace = namespace
        self._forwarders: dict[tuple[str, ConsoleType], _Forwarder] = {}
        self._forwarding = threading.Lock()

    def console_listener(self, uuid: str, kind: ConsoleType) -> tuple[str, int]:
        _, port = super().console_listener(uuid, kind)
        with self._forwarding:
            known = self._forwarders.get((uuid, kind))
            if known is not None and (known.inside != port or known.process.poll() is not None):
                known.end()
                known = None
            if known is None:
                known = self._forwarders[uuid, kind] = self._forward(port)
            return _LOOPBACK, known.outside

    def close(self) -> None:
        with self._forwarding:
            while self._forwarders:
                self._forwarders.popitem()[1].end()
        super().close()

    def _forward(self, port: int) -> _Forwarder:
        script = files("causeway.virt.lab").joinpath("console_forwarder.py")
        with socket.create_server((_LOOPBACK, 0)) as listener:
            number = listener.fileno()
            command = ["ip", "netns", "exec", self._namespace]
            command += [sys.executable, "-I", str(script), str(number), str(port)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number], cwd="/")
            return _Forwarder(port, int(listener.getsockname()[1]), process)


def driver_of(
    endpoint: LibvirtEndpoint,
    *,
    virt_type: str = "auto",
    screens: bool = True,
    serial_consoles: bool = True,
    pool: DiskPool | None = None,
) -> LabDriver:
    """The driver of a lab host, not started.

    ``screens``, ``serial_consoles``: whether guests have them. ``pool``: where their disks are; None: files of the host.
    """
    return LabDriver(
        endpoint.netns,
        endpoint.uri,
        endpoint.host,
        endpoint.instances_dir,
        virt_type=virt_type,
        network_agent=endpoint.network_agent,
        swtpm=endpoint.swtpm,
        has_tpm=True,
        limits=HostLimits(endpoint.vcpus, endpoint.memory_mb, endpoint.local_gb),
        probe_cache=endpoint.probe_cache,
        pool=pool,
        # Drivers run on the machine, outside of the hosts' network.
        live=LiveSettings(
            endpoint.address, uri=endpoint.control_uri, reachable_here=False, inside=endpoint.inside, tls=True
        ),
        # The loopback of the host's own network, which only root of this machine can reach.
        consoles=ConsoleSettings(
            vnc_listen=_LOOPBACK if screens else None, serial=_LOOPBACK if serial_consoles else None
        ),
    )
