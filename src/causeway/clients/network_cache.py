"""Remembers networks, subnets and security groups for some seconds: every read of ports needs them, and they rarely change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from causeway.clients.network_info import Around

Json = dict[str, Any]
Reader = Callable[[list[str]], list[Json]]

LIFETIME_SECONDS = 10.0
MOST_ENTRIES = 2000


class NetworkCache:
    """The readers read objects of given ids from the service."""

    def __init__(
        self, read_networks: Reader, read_subnets: Reader, read_groups: Reader, lifetime: float = LIFETIME_SECONDS
    ) -> None:
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._networks: dict[str, tuple[float, Json]] = {}
        self._subnets: dict[str, tuple[float, Json]] = {}
        self._groups: dict[str, tuple[float, Json]] = {}
        self._read_networks = read_networks
        self._read_subnets = read_subnets
        self._read_groups = read_groups

    def of_ports(self, ports: Iterable[Json]) -> Around:
        """What ports refer to, without objects that the service does not show."""
        ports = list(ports)
        networks = {port["network_id"] for port in ports}
        subnets = {ip["subnet_id"] for port in ports for ip in port.get("fixed_ips") or []}
        return Around(
            self._get(self._networks, self._read_networks, networks),
            self._get(self._subnets, self._read_subnets, subnets),
            self.groups_of_ports(ports),
        )

    def groups_of_ports(self, ports: Iterable[Json]) -> dict[str, Json]:
        """The security groups of ports, by id; only those that the service shows."""
        groups = {group for port in ports for group in port.get("security_groups") or []}
        return self._get(self._groups, self._read_groups, groups)

    def _get(self, kept: dict[str, tuple[float, Json]], read: Reader, ids: set[str]) -> dict[str, Json]:
        oldest = time.monotonic() - self._lifetime
        with self._lock:
            found = {each: kept[each][1] for each in ids if each in kept and kept[each][0] >= oldest}
        missing = sorted(ids - found.keys())
        if missing:
            fresh = {each["id"]: each for each in read(missing)}
            now = time.monotonic()
            with self._lock:
                if len(kept) > MOST_ENTRIES:
                    kept.clear()
                kept.update({each: (now, value) for each, value in fresh.items()})
            found |= fresh
        return found
