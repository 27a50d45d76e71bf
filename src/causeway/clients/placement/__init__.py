"""Placement: the client.

::

    client = remote_placement(conf)
    found = client.allocation_candidates(CandidatesRequest([RequestGroup(resources={"VCPU": 1})]))
    client.claim(server_uuid, found.requests[0].allocations, project_id, user_id)

The embedded cloud runs the real service in its process: `causeway.embedded.placement`.
"""

from causeway.clients.placement.client import PlacementClient, remote_placement
from causeway.clients.placement.types import (
    AllocationRecord,
    AllocationRequest,
    Allocations,
    Candidates,
    CandidatesRequest,
    Capacity,
    Inventory,
    Provider,
    ProviderSummary,
    RequestGroup,
    Resources,
)

__all__ = [
    "AllocationRecord",
    "AllocationRequest",
    "Allocations",
    "Candidates",
    "CandidatesRequest",
    "Capacity",
    "Inventory",
    "PlacementClient",
    "Provider",
    "ProviderSummary",
    "RequestGroup",
    "Resources",
    "remote_placement",
]
