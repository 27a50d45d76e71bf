"""How many moves are where, for Prometheus: read from the journal when it asks, in one statement."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from causeway import errors
from causeway.store.api import standing
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


class StandingMoves:
    """causeway_moves: moves that have not ended, by recipe, state, and the step that was begun last."""

    def __init__(self, api: Database) -> None:
        self._api = api

    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily("causeway_moves", "Moves that have not ended.", labels=["recipe", "state", "step"])
        try:
            for found in standing.moves(self._api):
                gauge.add_metric([found.recipe, found.state, found.step or ""], found.count)
        except errors.DatabaseFailed as failure:
            # The other numbers are still worth showing.
            LOG.warning("Moves can't be counted: %s", failure.message)
            return []
        return [gauge]
