"""What Placement's calls take and give, as plain typed values.

Amounts are in the units of the resource class: VCPU in pieces, MEMORY_MB in MiB, DISK_GB in GiB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Resources = dict[str, int]
"""Resource class -> amount."""

Allocations = dict[str, Resources]
"""Resource provider uuid -> what is held there."""


@dataclass(frozen=True)
class Inventory:
    """One resource class of a provider. What can be allocated is ``(total - reserved) * allocation_ratio``."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    min_unit: int = 1
    max_unit: int | None = None  # None: total
    step_size: int = 1

    def to_wire(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "reserved": self.reserved,
            "allocation_ratio": self.allocation_ratio,
            "min_unit": self.min_unit,
            "max_unit": self.total if self.max_unit is None else self.max_unit,
            "step_size": self.step_size,
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Inventory:
        return cls(**{name: wire[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Provider:
    """A resource provider; a compute node's has the node's uuid."""

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None = None
    root_uuid: str = ""

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Provider:
        return cls(
            uuid=wire["uuid"],
            name=wire["name"],
            generation=wire["generation"],
            parent_uuid=wire.get("parent_provider_uuid"),
            root_uuid=wire.get("root_provider_uuid") or wire["uuid"],
        )


@dataclass(frozen=True)
class Capacity:
    """How much of a resource class a provider can give in all, and has given."""

    capacity: int
    used: int

    @property
    def free(self) -> int:
        return self.capacity - self.used


@dataclass
class ProviderSummary:
    """A provider as a list of allocation candidates describes it."""

    uuid: str
    root_uuid: str
    parent_uuid: str | None = None
    resources: dict[str, Capacity] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()


@dataclass
class AllocationRequest:
    """One way to satisfy a request; can be claimed as it is. ``mappings``: request group -> providers that serve it."""

    allocations: Allocations
    mappings: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Candidates:
    requests: list[AllocationRequest] = field(default_factory=list)
    providers: dict[str, ProviderSummary] = field(default_factory=dict)

    def root_of(self, request: AllocationRequest) -> str:
        """The compute node's provider that the request is for.

        An allocation may also touch sharing providers, which are roots of their own: the node is the root that most of
        the providers of the request are under, and on a tie the one that gives VCPU or PCPU.
        """
        weights: dict[str, int] = {}
        for provider, resources in request.allocations.items():
            root = self.providers[provider].root_uuid if provider in self.providers else provider
            weights[root] = weights.get(root, 0) + (1000 if {"VCPU", "PCPU", "MEMORY_MB"} & resources.keys() else 1)
        return max(weights, key=lambda root: weights[root])


@dataclass
class RequestGroup:
    """What one group of a request asks for. ``suffix`` "" is the group that may be spread over a provider tree."""

    suffix: str = ""
    resources: Resources = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    # A provider must be in at least one aggregate of each set.
    member_of: list[set[str]] = field(default_factory=list)
    forbidden_aggregates: set[str] = field(default_factory=set)
    in_tree: str | None = None

    def to_query(self) -> list[tuple[str, str]]:
        query: list[tuple[str, str]] = []
        if self.resources:
            amounts = ",".join(f"{name}:{amount}" for name, amount in sorted(self.resources.items()))
            query.append((f"resources{self.suffix}", amounts))
        traits = sorted(self.required) + [f"!{trait}" for trait in sorted(self.forbidden)]
        if traits:
            query.append((f"required{self.suffix}", ",".join(traits)))
        query += [(f"member_of{self.suffix}", "in:" + ",".join(sorted(uuids))) for uuids in self.member_of]
        if self.forbidden_aggregates:
            query.append((f"member_of{self.suffix}", "!in:" + ",".join(sorted(self.forbidden_aggregates))))
        if self.in_tree:
            query.append((f"in_tree{self.suffix}", self.in_tree))
        return query


@dataclass
class CandidatesRequest:
    """A request for allocation candidates. ``limit`` None: all there are."""

    groups: list[RequestGroup]
    root_required: set[str] = field(default_factory=set)
    root_forbidden: set[str] = field(default_factory=set)
    group_policy: str | None = None
    same_subtree: list[set[str]] = field(default_factory=list)
    limit: int | None = None

    @property
    def resources(self) -> Resources:
        """The sum over all groups."""
        total: Resources = {}
        for group in self.groups:
            for name, amount in group.resources.items():
                total[name] = total.get(name, 0) + amount
        return total

    def to_query(self) -> list[tuple[str, str]]:
        query = [pair for group in self.groups for pair in group.to_query()]
        root = sorted(self.root_required) + [f"!{trait}" for trait in sorted(self.root_forbidden)]
        if root:
            query.append(("root_required", ",".join(root)))
        if self.group_policy:
            query.append(("group_policy", self.group_policy))
        query += [("same_subtree", ",".join(sorted(suffixes))) for suffixes in self.same_subtree]
        if self.limit is not None:
            query.append(("limit", str(self.limit)))
        return sorted(query)


@dataclass
class AllocationRecord:
    """What a consumer holds, and the generation that says how fresh that knowledge is.

    ``generation`` None: Placement does not know the consumer, which is the same as holding nothing. Placement gives a new
    consumer generation 1 with its first write and adds 1 with every later one; it gives the number only in answers to
    GET. A record kept from our own writes is therefore a *guess* that is right unless somebody else wrote meanwhile, and
    a write made with it is safe: when the generation is wrong Placement refuses (409) and nothing has happened.
    """

    consumer_uuid: str
    allocations: Allocations = field(default_factory=dict)
    generation: int | None = None
    project_id: str = ""
    user_id: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.allocations

    def holds_on(self, provider_uuid: str) -> bool:
        return provider_uuid in self.allocations
