"""Hosts for many servers together: the request to the scheduler, and its answer.

Nothing is claimed. Each server takes room from those after it, as if all of them had been moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway.scheduler.request import RequestedGroup, RequestSpec


@dataclass
class Mover:
    """One of many servers. ``spec``: the number of its request spec; ``host``: where it is, and must not stay.

    ``takes_room`` False: it only needs a host that would do if it had room, because it moves later.
    """

    uuid: str
    spec: int
    host: str = ""
    group: str | None = None
    takes_room: bool = True


@dataclass
class GroupPlaces:
    """A server group, and where its members take room: host -> servers."""

    group: RequestedGroup
    members: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class PackRequest:
    """``specs``: what servers ask for, without a server's id and group; servers that ask for the same share one.

    ``hosts``: the only ones that may take servers. ``groups`` by id. ``instance_hosts``: the hosts of servers that hints name.
    """

    specs: list[RequestSpec]
    movers: list[Mover]
    hosts: list[str]
    groups: dict[str, GroupPlaces] = field(default_factory=dict)
    instance_hosts: dict[str, str] = field(default_factory=dict)


@dataclass
class AssignedHost:
    host: str
    cell_uuid: str
    cell_name: str


@dataclass
class Lack:
    """The resource that suitable hosts have too little of. ``host`` lacks the least of it: the amount ``missing``."""

    resource: str
    host: str
    missing: int


@dataclass
class Homeless:
    """A server that no host can take. ``why``: the explanation in one sentence.

    ``lack``: None if no host would do even if it were empty. ``filters``: those that refused, by how many hosts.
    """

    why: str
    lack: Lack | None = None
    filters: list[str] = field(default_factory=list)


@dataclass
class Missing:
    """A resource of which ``servers`` together find too little in ``cells`` (names), by ``amount`` at least."""

    resource: str
    amount: int
    servers: int
    cells: list[str]


@dataclass
class Packing:
    """``places`` and ``homeless`` are by the server's id."""

    places: dict[str, AssignedHost] = field(default_factory=dict)
    homeless: dict[str, Homeless] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    silent_cells: list[str] = field(default_factory=list)
