"""Completes servers' ports with what the network service knows of them now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from causeway.adopt.records import ImportedServer
from causeway.clients.network import NetworkClient
from causeway.clients.port_owners import PortOwner

# Servers that one request names; their ids are in its URL.
_SERVERS = 50


class Ports:
    """Reads them some servers at a time."""

    def __init__(self, network: NetworkClient) -> None:
        self._network = network

    def complete(self, servers: Sequence[ImportedServer]) -> None:
        """Sets the network info and the security groups. Nova's order, tags and whose ports are deleted with the server stay."""
        for first in range(0, len(servers), _SERVERS):
            self._complete(servers[first : first + _SERVERS])

    def _complete(self, servers: Sequence[ImportedServer]) -> None:
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for port in self._network.ports_of_servers([server.instance.uuid for server in servers]):
            found[port["device_id"]].append(port)
        for server in servers:
            instance = server.instance
            owner = PortOwner.of(instance)
            ports = [port for port in found[instance.uuid] if owner.has(port)]
            instance.network_info = self._network.network_info(None, instance, ports)
            names = (name for vif in instance.network_info for name in vif.security_groups)
            instance.security_groups = list(dict.fromkeys(names))
