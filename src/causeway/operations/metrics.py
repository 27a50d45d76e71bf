"""Counts moves by recipe, state and step for Prometheus. Each scrape sends one statement to the journal's database."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from causeway import errors
from causeway.store.api import operation_counts
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


class OperationsCollector:
    """The metric causeway_operations: those that have not ended, by recipe, state, and the step that began last."""

    def __init__(self, api: Database) -> None:
        self._api = api

    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily(
            "causeway_operations", "Operations that have not ended.", labels=["recipe", "state", "step"]
        )
        try:
            for found in operation_counts.under_way(self._api):
                gauge.add_metric([found.recipe, found.state, found.step or ""], found.count)
        except errors.DatabaseFailed as failure:
            # A failure here must not keep the other metrics from Prometheus.
            LOG.warning("Moves can't be counted: %s", failure.message)
            return []
        return [gauge]
