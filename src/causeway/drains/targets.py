"""The hosts that a drain may use: those that its targets name, outside of its scope. The scheduler knows their free room."""

from __future__ import annotations

from causeway import errors
from causeway.drains.scope import Ground
from causeway.model.drains import Targets


def hosts_of(ground: Ground, targets: Targets, sources: set[str]) -> set[str]:
    """The hosts that servers may go to. ``sources``: hosts that are emptied. Raises BadRequest if none is left."""
    anywhere = not (targets.cells or targets.hosts or targets.aggregates)
    wanted = set(ground.hosts) if anywhere else ground.hosts_of("targets", targets)
    left = wanted - sources
    if left:
        return left
    if anywhere:
        raise errors.BadRequest("targets: There is no host outside of the scope that servers could go to.")
    if wanted:
        raise errors.BadRequest("targets: All of them are in the scope. Name hosts that the drain does not empty.")
    raise errors.BadRequest("targets: They have no hosts.")
