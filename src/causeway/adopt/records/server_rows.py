"""All rows that Nova has of one server, as they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from causeway.model.numa import NUMATopology

Row = Mapping[str, Any]


@dataclass
class ServerRows:
    """``migrations``: of all cells. ``events``: of the actions, by their ids. ``fault``: the newest one."""

    instance: Row
    extra: Row
    system_metadata: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    block_devices: list[Row] = field(default_factory=list)
    vif_tags: dict[str, str] = field(default_factory=dict)
    network_info: str | None = None
    pci_devices: list[Row] = field(default_factory=list)
    request_spec: str | None = None
    actions: list[Row] = field(default_factory=list)
    events: dict[int, list[Row]] = field(default_factory=dict)
    fault: Row | None = None
    migrations: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Surroundings:
    """What the rows of servers refer to.

    ``cells``: host -> uuid of its cell. ``topologies``: host -> its NUMA cells, for CPUs that guests share.
    """

    cells: Mapping[str, str]
    topologies: Mapping[str, NUMATopology]
    name_template: str


__all__ = ["Row", "ServerRows", "Surroundings"]
