"""Notifies the network service of where the guest of a port is going while it runs.

Neutron prepares the port on the other host only then: OVN binds it to both chassis and stops its traffic at the target until the
guest runs there; Open vSwitch's agent at the target wires it, and says so to Compute. Neutron takes the port down meanwhile.
Source: Neutron, ``migrating_to`` in ``neutron.agent.rpc`` and in the OVN mechanism driver. Only service users may write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from causeway import errors
from causeway.clients.network_api import Json
from causeway.clients.network_changes import PortChanges
from causeway.context import RequestContext

# The key in the profile of a port's active binding.
MIGRATING_TO = "migrating_to"


class PortMigrations(PortChanges):
    """The part of the network client that names the targets of live migrations."""

    def announce_migration(self, context: RequestContext, ports: Iterable[Json], host: str) -> None:
        """``ports``: as they were read. Ports that name the host already, or that are gone, are left. Raises Conflict."""

        def wanted(seen: Json) -> dict[str, Any] | None:
            profile = _profile(seen)
            return None if profile.get(MIGRATING_TO) == host else {"binding:profile": {**profile, MIGRATING_TO: host}}

        self._change_all(context, ports, wanted)

    def undo_announcement(self, context: RequestContext, ports: Iterable[Json], host: str) -> None:
        """Undoes `announce_migration`. Ports that name another host are left. Raises Conflict."""

        def wanted(seen: Json) -> dict[str, Any] | None:
            profile = _profile(seen)
            if profile.get(MIGRATING_TO) != host:
                return None
            return {"binding:profile": without_migration(profile)}

        self._change_all(context, ports, wanted)

    def _change_all(
        self, context: RequestContext, ports: Iterable[Json], wanted: Callable[[Json], dict[str, Any] | None]
    ) -> None:
        for port in ports:
            with suppress(errors.PortNotFound):
                self.change_port(context, port, wanted)


def without_migration(profile: dict[str, Any]) -> dict[str, Any]:
    """A binding's profile as it is when its port's guest goes nowhere."""
    return {key: value for key, value in profile.items() if key != MIGRATING_TO}


def _profile(port: Json) -> dict[str, Any]:
    return dict(port.get("binding:profile") or {})
