"""The arguments and results of Placement's calls, as plain typed values.

Amounts are in the units of the resource class: VCPU as a count, MEMORY_MB in MiB, DISK_GB in GiB.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

Resources = dict[str, int]
"""Resource class -> amount."""

Allocations = dict[str, Resources]
"""Resource provider uuid -> what is allocated there."""


@dataclass(frozen=True)
class Inventory:
    """One resource class of a provider, of which ``(total - reserved) * allocation_ratio`` can be allocated."""

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
    """How much of a resource class a provider can allocate in all, and has allocated."""

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
    """One way to satisfy a request, which can be claimed as it is. ``mappings``: request group -> providers that serve it."""

    allocations: Allocations
    mappings: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Candidates:
    requests: list[AllocationRequest] = field(default_factory=list)
    providers: dict[str, ProviderSummary] = field(default_factory=dict)

    def root_of(self, request: AllocationRequest) -> str:
        """The compute node's provider that the request is for.

        An allocation may also include sharing providers, which are roots too. The node is the root with most of the request's
        providers; on a tie, the one that provides VCPU or PCPU.
        """
        weights: dict[str, int] = {}
        for provider, resources in request.allocations.items():
            root = self.providers[provider].root_uuid if provider in self.providers else provider
            weights[root] = weights.get(root, 0) + (1000 if {"VCPU", "PCPU", "MEMORY_MB"} & resources.keys() else 1)
        return max(weights, key=lambda root: weights[root])


# The suffix of the group that binds a request to a node, and what such a group may ask for: a node has one of these itself.
ANCHOR = "_NODE"
_ANCHORS = ("VCPU", "PCPU", "MEMORY_MB")


@dataclass
class RequestGroup:
    """One group of a request. The group with ``suffix`` "" may be spread over a provider tree."""

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
    """A request for allocation candidates. ``limit`` None: all of them."""

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
        groups, policy = self.groups, self.group_policy
        if policy != "isolate":
            # The node would be isolated from groups that it serves itself.
            groups = [part for group in groups for part in _bound_to_node(group)]
            policy = policy or ("none" if sum(bool(group.suffix) for group in groups) > 1 else None)
        query = [pair for group in groups for pair in group.to_query()]
        root = sorted(self.root_required) + [f"!{trait}" for trait in sorted(self.root_forbidden)]
        if root:
            query.append(("root_required", ",".join(root)))
        if policy:
            query.append(("group_policy", policy))
        query += [("same_subtree", ",".join(sorted(suffixes))) for suffixes in self.same_subtree]
        if self.limit is not None:
            query.append(("limit", str(self.limit)))
        return sorted(query)


def _bound_to_node(group: RequestGroup) -> list[RequestGroup]:
    """A group for one node as two: what the node has itself, and the rest, whose disk other providers may share with the node.

    With ``in_tree`` Placement offers nothing of those. What all groups of a request get hangs together: the rest comes from the
    node of the first part, or from what shares it with that node.
    """
    own = next((name for name in _ANCHORS if name in group.resources), None)
    if group.suffix or group.in_tree is None or own is None or "DISK_GB" not in group.resources:
        return [group]
    others = {name: amount for name, amount in group.resources.items() if name != own}
    anchor = RequestGroup(ANCHOR, {own: group.resources[own]}, in_tree=group.in_tree)
    return [replace(group, resources=others, in_tree=None), anchor]


@dataclass
class AllocationRecord:
    """The allocations of a consumer, and the generation in which it has them.

    ``generation`` None: Placement does not know the consumer, so it has no allocations. A consumer gets generation 1 with its
    first write, and 1 more with every later one. Placement shows the number only in answers to GET. So a record kept from our own
    writes is a *guess*, which is right unless another process wrote meanwhile. Writing with it is safe: if the generation is
    wrong, Placement refuses (409) and changes nothing.

    ``is_written``: the call that returned this has written it, and did not find it.
    """

    consumer_uuid: str
    allocations: Allocations = field(default_factory=dict)
    generation: int | None = None
    project_id: str = ""
    user_id: str = ""
    is_written: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.allocations

    def holds_on(self, provider_uuid: str) -> bool:
        return provider_uuid in self.allocations
