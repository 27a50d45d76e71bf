"""IsolatedHostsFilter."""

from __future__ import annotations

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState


class IsolatedHostsFilter(HostFilter):
    """``isolated_images`` run on ``isolated_hosts`` only, and (unless configured otherwise) nothing else runs there."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        hosts, images = self.options.isolated_hosts, self.options.isolated_images
        image_isolated = request.spec.image is not None and request.spec.image.id in images
        host_isolated = host.host in hosts
        if image_isolated and not host_isolated:
            return Refusal("is not for isolated images", "are not for isolated images")
        if host_isolated and not image_isolated and self.options.restrict_isolated_hosts_to_isolated_images:
            return Refusal("is for isolated images only", "are for isolated images only")
        return None
