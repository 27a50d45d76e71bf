"""SharedStorageWeigher."""

from __future__ import annotations

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.weighers.base import HostWeigher


class SharedStorageWeigher(HostWeigher, of_host_alone=False):
    """Prefers hosts that share the storage of the server's disks: they take it over without a byte of these.

    An evacuated server keeps its disks only on such a host.
    """

    option = "shared_storage_weight_multiplier"

    def concerns(self, request: Request) -> bool:
        return request.spec.preferred_storage is not None

    def weigh(self, host: HostState, request: Request) -> float:
        return float(host.shares(request.spec.preferred_storage))
