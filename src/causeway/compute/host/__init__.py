"""A host, and what it knows by itself: claims, whose orders it follows (`fence`), who waits for ports (`vif_events`).

`transfer_progress` reports how many bytes have come.
"""

from causeway.compute.host.host import Host

__all__ = ["Host"]
