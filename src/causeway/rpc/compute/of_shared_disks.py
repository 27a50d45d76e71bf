"""Calls about disks in storage that several hosts reach: which version of a host's interface they need."""

from __future__ import annotations

from causeway import errors
from causeway.rpc.declare import Newer

_SINCE = "1.18"


def shares_no_disks(host: str, _method: str) -> errors.HostTooOld:
    return errors.HostTooOld(
        "The host's compute service can't share disks with other hosts until it is upgraded.", details=f"host {host}"
    )


WITH_SHARED_DISKS = Newer(_SINCE, lambda given: bool(given["shared"]), shares_no_disks)
FROM_DEAD_HOST = Newer(_SINCE, lambda given: given["dead_host"] is not None, shares_no_disks)
SHARING_DISKS = Newer(_SINCE, lambda given: bool(given["shares"]), shares_no_disks)
