"""A host, and what it knows by itself: claims, whose orders it follows (`fence`), who waits for ports (`vif_events`).

`transfer_progress` tells others how far it has come with bytes.
"""

from causeway.compute.host.host import Host

__all__ = ["Host"]
