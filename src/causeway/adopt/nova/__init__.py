"""Nova's databases, as its releases since Xena (24) write them: opened, and read in batches. Nothing here writes."""

from __future__ import annotations

from causeway.adopt.nova.cloud import NovaCell, NovaCloud
from causeway.adopt.nova.database import NovaDatabase

__all__ = ["NovaCell", "NovaCloud", "NovaDatabase"]
