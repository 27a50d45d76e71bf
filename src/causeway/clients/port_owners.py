"""Whose port is it? Anybody may write any server's id into the ``device_id`` of their own port; so it proves nothing.

A port with a server's id in it is the server's if it is of the server's project, or if the server's record names it: then an
operation of ours has attached it. Any other is a stranger's. Strangers are ignored everywhere, and the audit reports them
(`causeway.audit.checks.owners`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from causeway.model.instance import Instance
from causeway.model.network import Vif


@dataclass(frozen=True)
class PortOwner:
    """A server, as far as it matters for the question. ``recorded``: the ports that its record names."""

    uuid: str
    project_id: str
    recorded: frozenset[str] = frozenset()

    @classmethod
    def of(cls, instance: Instance, more: Iterable[Vif] = ()) -> PortOwner:
        """``more``: ports that an operation is attaching."""
        return cls(instance.uuid, instance.project_id, frozenset(vif.id for vif in (*instance.network_info, *more)))

    def has(self, port: Mapping[str, Any]) -> bool:
        """Whether a port, as the network service shows it, is this server's."""
        if port.get("device_id") != self.uuid:
            return False
        return is_of_project(port, self.project_id) or port.get("id") in self.recorded


def is_of_project(port: Mapping[str, Any], project_id: str) -> bool:
    return bool(project_id) and (port.get("project_id") or port.get("tenant_id")) == project_id
