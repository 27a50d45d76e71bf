"""A host and its own records: claims, whose orders it follows (`fence`), and waits for ports (`vif_events`).

`transfer_progress` reports the progress of transfers.
"""

from causeway.compute.host.host import Host

__all__ = ["Host"]
