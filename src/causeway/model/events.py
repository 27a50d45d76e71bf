"""Events that other services send about servers."""

from __future__ import annotations

from dataclasses import dataclass

# Events after which the ports shown for a server may be out of date.
CHANGED = "network-changed"
# A volume that a guest has is larger; the tag is its id.
EXTENDED = "volume-extended"


@dataclass
class ExternalEvent:
    """One entry of ``POST /os-server-external-events``, e.g. name ``network-vif-plugged``, tag = port id."""

    name: str
    server_uuid: str
    status: str = "completed"
    tag: str | None = None


@dataclass
class HostEvents:
    """Events for one compute host."""

    cell_uuid: str
    host: str
    events: list[ExternalEvent]
