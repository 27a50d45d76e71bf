"""Switches that tests and labs may set at any time: in this process, or in a file that is read again whenever it changes."""

import logging
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

LOG = logging.getLogger(__name__)


class Backend(StrEnum):
    """What wires the ports of a host, and how it notifies Compute of that."""

    #: as soon as the port is bound; one message
    BRIDGE = "bridge"
    #: Open vSwitch's agent: also at the target of a live migration whose active binding names it. The port stays down then
    AGENT = "agent"
    #: the same, with a bridge of the port's own (`iptables_hybrid`)
    HYBRID = "hybrid"
    #: as soon as the host has plugged the port. Messages come twice, and a port that is unplugged is reported before. Also at the
    #: target of a live migration whose active binding names it: the port comes up there
    OVN = "ovn"


class Switches:
    """How the network service behaves.

    - `plug_delay`: seconds from the binding of a port until it is ACTIVE and `network-vif-plugged` is sent;
    - `unpluggable_hosts`: ports on these hosts never become ACTIVE;
    - `port_resource_request_groups`: whether ports show their resource requests as groups, or in the older form, as one;
    - `backends`: host -> what wires its ports (`Backend`); others have Linux bridges;
    - `has_plugged`: (host, port id) -> whether the host has plugged the port, which is waited for where a switch wires ports;
      None: it is not known, and not waited for;
    - `on_ports_changed`: called on a background thread after networks, subnets, ports or bindings were changed, and before ports
      that wait for it become ACTIVE;
    - `makes_luks`: the files of encrypted volumes are LUKS, as real hypervisors need them. Needs qemu-img, and some seconds.

    While ``file`` is there, the first four are what it says, a YAML mapping of their names.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._version: tuple[int, int] | None = None
        self._written: dict[str, Any] = {}
        self._plug_delay = 0.0
        self._unpluggable_hosts: set[str] = set()
        self._port_resource_request_groups = True
        self._backends: dict[str, Backend] = {}
        self.has_plugged: Callable[[str, str], bool] | None = None
        self.on_ports_changed: Callable[[], None] | None = None
        self.makes_luks = False

    @property
    def plug_delay(self) -> float:
        return float(self._in_file().get("plug_delay", self._plug_delay))

    @plug_delay.setter
    def plug_delay(self, seconds: float) -> None:
        self._plug_delay = seconds

    @property
    def unpluggable_hosts(self) -> set[str]:
        written = self._in_file().get("unpluggable_hosts")
        return self._unpluggable_hosts if written is None else set(written)

    @unpluggable_hosts.setter
    def unpluggable_hosts(self, hosts: set[str]) -> None:
        self._unpluggable_hosts = hosts

    @property
    def backends(self) -> dict[str, Backend]:
        written = self._in_file().get("backends")
        return self._backends if written is None else {host: Backend(name) for host, name in written.items()}

    @backends.setter
    def backends(self, of_hosts: dict[str, Backend]) -> None:
        self._backends = of_hosts

    @property
    def port_resource_request_groups(self) -> bool:
        return bool(self._in_file().get("port_resource_request_groups", self._port_resource_request_groups))

    @port_resource_request_groups.setter
    def port_resource_request_groups(self, are_shown: bool) -> None:
        self._port_resource_request_groups = are_shown

    def _in_file(self) -> dict[str, Any]:
        if self._file is None:
            return {}
        try:
            found = self._file.stat()
        except FileNotFoundError:
            self._version = None
            return {}
        version = (found.st_mtime_ns, found.st_size)
        if version != self._version:
            try:
                self._written = dict(yaml.safe_load(self._file.read_text()) or {})
            except (OSError, yaml.YAMLError, TypeError, ValueError) as error:
                LOG.error("%s is not a mapping of switches and is ignored: %s", self._file, error)
                self._written = {}
            self._version = version
        return self._written
