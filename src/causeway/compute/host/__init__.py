"""A host and its own records: claims, whose orders it follows (`fence`), and waits for ports (`vif_events`).

`transfer_progress` reports how many bytes have come.
"""

from causeway.compute.host.host import Host

__all__ = ["Host"]
