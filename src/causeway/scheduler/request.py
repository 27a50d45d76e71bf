"""Requests to the scheduler, and its answers. All of them can cross RPC as JSON.

A `RequestSpec` lives as long as its server: every later move starts from it. What belongs to one request only must not be
stored, or the next move inherits it (stored ``ignore_hosts`` once made evacuations refuse the only host left, and a stored
``requested_destination`` made the next move fail). So its fields are in two groups, and `RequestSpec.to_persist` writes only
the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from causeway.clients.placement.types import AllocationRecord, AllocationRequest, RequestGroup
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.numa import InstanceNUMATopology
from causeway.model.orders import Order
from causeway.model.pci import InstancePCIRequest
from causeway.scheduler.explain import Explanation

# Stored with the server. Everything else belongs to one request.
PERSISTED = frozenset(
    {
        "instance_uuid",
        "project_id",
        "user_id",
        "flavor",
        "image",
        "is_volume_backed",
        "num_instances",
        "availability_zone",
        "server_group",
        "scheduler_hints",
    }
)


@dataclass
class Destination:
    """Where a request wants to go.

    ``cell`` alone keeps the server in that cell. With ``allow_cross_cell_move`` every cell may serve, and ``cell`` (the
    one that the server is in) is only preferred.
    """

    host: str | None = None
    node: str | None = None
    cell: str | None = None
    allow_cross_cell_move: bool = False
    # Every cell may serve but this one.
    leave_cell: str | None = None


@dataclass
class RequestedGroup:
    """The server group that the server is a member of. Where the members are is looked up for each request."""

    uuid: str
    policy: str
    rules: dict[str, Any] = field(default_factory=dict)

    @property
    def max_server_per_host(self) -> int:
        return int(self.rules.get("max_server_per_host", 1))


@dataclass
class RequestSpec:
    """A request for a host. ``project_id`` and ``user_id`` are those of the server's owner, not of the caller."""

    instance_uuid: str
    project_id: str
    user_id: str
    flavor: Flavor
    image: ImageMeta | None = None
    is_volume_backed: bool = False
    num_instances: int = 1
    # The zone that the user asked for; None for any zone.
    availability_zone: str | None = None
    server_group: RequestedGroup | None = None
    scheduler_hints: dict[str, list[str]] = field(default_factory=dict)

    # These fields belong to one request and are never stored:
    # The server has no allocation yet. If it has one, another conductor has chosen a host, and this one is too late.
    is_new: bool = False
    # Which attempt of which operation waits for the answer; None: a conductor of release 0.1.0 asks, or nobody claims.
    order: Order | None = None
    requested_destination: Destination | None = None
    # The storage of the server's disks, which several hosts reach; None: its host's own.
    source_storage: str | None = None
    # GiB that the server holds there before the move; None: as much as its flavor says.
    source_disk_gb: int | None = None
    ignore_hosts: list[str] = field(default_factory=list)
    # Like requested_destination, but past all filters (administrators only).
    force_hosts: list[str] = field(default_factory=list)
    # The requests of the server's ports, as request groups with a suffix.
    requested_resources: list[RequestGroup] = field(default_factory=list)
    same_subtree: list[set[str]] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    # What this request's flavor asks for, made from flavor and image each time (bugs 1941005, 1805767: the stored one was
    # that of the old flavor). See `causeway.hardware`.
    numa_topology: InstanceNUMATopology | None = None
    pci_requests: list[InstancePCIRequest] = field(default_factory=list)

    @property
    def preferred_cell(self) -> str | None:
        """The cell that the CrossCellWeigher favours: only if the request could leave it."""
        destination = self.requested_destination
        return destination.cell if destination is not None and destination.allow_cross_cell_move else None

    @property
    def preferred_storage(self) -> str | None:
        """Where hosts should keep disks, so that the server's root disk stays where it is."""
        return None if self.is_volume_backed else self.source_storage

    def to_persist(self) -> dict[str, Any]:
        """Returns the part of the spec that is stored with the server."""
        whole: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in whole.items() if name in PERSISTED}

    @classmethod
    def from_persisted(cls, stored: dict[str, Any]) -> RequestSpec:
        """A spec for a new request. Unknown names (of a newer or older service) are ignored."""
        return msgspec.convert({name: value for name, value in stored.items() if name in PERSISTED}, cls)


def likeness(spec: RequestSpec, *, by_project: bool, by_image: bool) -> bytes:
    """The same key for all requests on which the verdicts of hosts are the same, whoever owns the server.

    ``by_project``, ``by_image``: some hosts are reserved for some projects, or images.
    """
    image = spec.image
    if image is not None:
        image = ImageMeta(image.id if by_image else "", disk_format=image.disk_format, properties=image.properties)
    project = spec.project_id if by_project else ""
    return msgspec.json.encode(replace(spec, instance_uuid="", user_id="", project_id=project, image=image, order=None))


@dataclass
class MoveClaim:
    """Says that the claim is for a move: what the server holds goes to the migration in the same call.

    ``source_node``: uuid of the compute node that the server is on. ``source``: what the server holds there, if known.
    """

    migration_uuid: str
    source_node: str
    source: AllocationRecord | None = None


@dataclass
class Selection:
    """A host for a server. ``node_uuid`` is the compute node's and its provider's."""

    host: str
    node_uuid: str
    hypervisor_hostname: str
    cell_uuid: str
    cell_name: str
    allocation_request: AllocationRequest
    availability_zone: str
    host_ip: str | None = None
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass
class SchedulingResult:
    """``selected`` is claimed in Placement; ``alternates`` (of the same cell, best first) are not."""

    instance_uuid: str
    selected: Selection
    alternates: list[Selection]
    explanation: Explanation
