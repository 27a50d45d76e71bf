"""Which hosts a drain may use: named by its targets, and outside of its scope. What is free there, the scheduler knows."""

from __future__ import annotations

from causeway import errors
from causeway.drains.scope import Ground
from causeway.model.drains import Targets


def hosts_of(ground: Ground, targets: Targets, sources: set[str]) -> set[str]:
    """``sources``: hosts that are emptied. Raises BadRequest if none is left."""
    anywhere = not (targets.cells or targets.hosts or targets.aggregates)
    wanted = set(ground.hosts) if anywhere else ground.hosts_of("targets", targets)
    left = wanted - sources
    if left:
        return left
    if anywhere:
        raise errors.BadRequest("targets: There is no host outside of the scope that servers could go to.")
    if wanted:
        raise errors.BadRequest(
            "targets: All of them are in the scope: a drain can't move servers to where it takes them from."
        )
    raise errors.BadRequest("targets: There is no host in them.")
