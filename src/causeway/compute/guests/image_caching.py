"""Fetches images to the host before a server is made from them."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext

LOG = logging.getLogger(__name__)


class ImageCachingEndpoint:
    """RPC: cache_images."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def cache_images(self, context: RequestContext, *, image_ids: list[str]) -> dict[str, str]:
        """image -> "cached" (now), "existing" (before), or "error". After an error the other images are still fetched."""
        return {image_id: self._cache(context, image_id) for image_id in image_ids}

    def _cache(self, context: RequestContext, image_id: str) -> str:
        cache = self._host.image_cache
        if cache.find(image_id) is not None:
            return "existing"
        if self._host.stopping.is_set():
            return "error"
        try:
            cache.fetch(context, image_id)
        except errors.CausewayError as failure:
            LOG.warning("Image %s was not cached: %s %s", image_id, failure.message, failure.details)
            return "error"
        return "cached"
