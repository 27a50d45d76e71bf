"""The real Placement service in the process of an embedded cloud.

::

    placement = local_placement(directory / "placement.sqlite")
    client = placement.client()

Both are in `causeway.embedded.placement.local`; importing that loads the whole service.
"""
