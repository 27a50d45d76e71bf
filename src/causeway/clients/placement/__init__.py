"""Placement: the client, and the real service in this process.

::

    placement = local_placement(directory / "placement.sqlite")   # or: client = remote_placement(conf)
    client = placement.client()
    found = client.allocation_candidates(CandidatesRequest([RequestGroup(resources={"VCPU": 1})]))
    client.claim(server_uuid, found.requests[0].allocations, project_id, user_id)

``LocalPlacement`` is in `causeway.embedded.placement.local`: importing that loads the whole Placement service, which processes
with a remote one do not need.
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
