"""Has the hosts of an aggregate cache images before users make servers from them."""

from __future__ import annotations

import itertools
import logging
from concurrent.futures import ThreadPoolExecutor

from causeway import errors
from causeway.context import RequestContext
from causeway.hosts import liveness
from causeway.model.host import Aggregate
from causeway.running.services import ConductorServices
from causeway.store.api import aggregates
from causeway.store.api import cells as cell_records

LOG = logging.getLogger(__name__)

SKIPPED, ERROR = "skipped", "error"


class ImageCachingEndpoint:
    """RPC: cache_images. No caller waits for its result; notifications show the progress.

    Hosts fetch images with credentials of their own, so they are ordered only what the requester's token shows.
    """

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def cache_images(self, context: RequestContext, *, aggregate_id: int, image_ids: list[str]) -> None:
        """Asks `[image_cache] precache_concurrency` hosts at a time. Skips hosts that are down."""
        services = self._services
        aggregate = aggregates.get(services.api, aggregate_id)
        shown = [image_id for image_id in image_ids if self._is_shown(context, image_id)]
        done = itertools.count(1)

        def on_host(host: str) -> None:
            result = dict.fromkeys(image_ids, SKIPPED)
            if not services.stopping.is_set():
                result = dict.fromkeys(image_ids, ERROR) | self._on_host(context, host, shown)
            services.notifier.aggregate_cache(
                context, aggregate, host, result, index=next(done), total=len(aggregate.hosts)
            )

        services.notifier.aggregate(context, aggregate, "cache_images", "start")
        at_once: int = services.conf.image_cache.precache_concurrency
        with ThreadPoolExecutor(at_once, thread_name_prefix="cache-images") as pool:
            list(pool.map(on_host, aggregate.hosts))
        services.notifier.aggregate(context, aggregate, "cache_images", "end")
        _log(aggregate, image_ids)

    def _is_shown(self, context: RequestContext, image_id: str) -> bool:
        try:
            self._services.images.show(context, image_id)
        except errors.CausewayError as refusal:
            LOG.warning("Image %s is not cached: %s", image_id, refusal.message)
            return False
        return True

    def _on_host(self, context: RequestContext, host: str, image_ids: list[str]) -> dict[str, str]:
        """Has a host cache images. Returns image -> the outcome."""
        services = self._services
        try:
            cell_uuid = cell_records.cell_of_host(services.api, host)
            life = liveness.of_host(services, services.cells.database(cell_uuid), host)
            if not life.is_up:
                LOG.warning("Images are not cached: %s", life.explained())
                return dict.fromkeys(image_ids, SKIPPED)
            return services.computes(cell_uuid).cache_images(context, host, image_ids=image_ids)
        except errors.CausewayError as failure:
            LOG.warning("Images were not cached on host %s: %s %s", host, failure.message, failure.details)
            return dict.fromkeys(image_ids, ERROR)


def _log(aggregate: Aggregate, image_ids: list[str]) -> None:
    LOG.info("The hosts of aggregate %s were asked for %d images", aggregate.name, len(image_ids))
