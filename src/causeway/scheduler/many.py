"""Many servers that are to find hosts together: what is asked of the scheduler, and what it answers.

Nothing is claimed. Each server of the answer takes room from those after it, as if all of them had been moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway.scheduler.request import RequestedGroup, RequestSpec


@dataclass
class Mover:
    """One of many servers. ``spec``: the number of its request spec; ``host``: where it is, which will not do.

    ``takes_room`` False: it only has to find hosts that would do if they had room, for it comes up some other time.
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
    """``specs``: what servers ask for, those that ask for the same share one; without a server's id and its group.

    ``hosts``: the only ones that may take servers. ``groups`` by id. ``instance_hosts``: where servers are that hints name.
    """

    specs: list[RequestSpec]
    movers: list[Mover]
    hosts: list[str]
    groups: dict[str, GroupPlaces] = field(default_factory=dict)
    instance_hosts: dict[str, str] = field(default_factory=dict)


@dataclass
class Place:
    host: str
    cell_uuid: str
    cell_name: str


@dataclass
class Lack:
    """What hosts that would do have too little of. ``host``: the one that lacks least of it, ``missing`` so much."""

    resource: str
    host: str
    missing: int


@dataclass
class Homeless:
    """A server that no host can take. ``why``: the explanation in one sentence.

    ``lack``: None if no host would do even if it were empty. ``filters``: who refused, most hosts first.
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
    """By server's id."""

    places: dict[str, Place] = field(default_factory=dict)
    homeless: dict[str, Homeless] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    silent_cells: list[str] = field(default_factory=list)
