"""/metrics: where Prometheus reads what a process counted."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from http.server import HTTPServer
from pathlib import Path
from typing import Any, Protocol

from oslo_config import cfg
from prometheus_client import REGISTRY, CollectorRegistry, make_wsgi_app, values
from prometheus_client.exposition import MetricsHandler
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

LOG = logging.getLogger(__name__)

FILES = "PROMETHEUS_MULTIPROC_DIR"
# A reader that stops reading holds up the next one for so many seconds, and nobody else.
READER_TIMEOUT = 10.0


class Collector(Protocol):
    """Something that is looked up when Prometheus asks."""

    def collect(self) -> Iterable[Metric]: ...


class _Process:
    """What this process counted, memory and processor time among it."""

    def collect(self) -> Iterable[Metric]:
        return REGISTRY.collect()


def registry(collectors: Sequence[Collector] = ()) -> CollectorRegistry:
    """All that one endpoint shows. Several may be open in a process."""
    registry = CollectorRegistry(auto_describe=False)
    if FILES in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_Process())
    for collector in collectors:
        registry.register(collector)
    return registry


def application(collectors: Sequence[Collector] = ()) -> Callable[..., Any]:
    """/metrics as a WSGI application."""
    return make_wsgi_app(registry(collectors))


def count_into_files(directory: Path) -> None:
    """From here on, and in processes that are forked from this one, everything is counted into files of ``directory``.

    Before anything is counted. Each process has its own files; any of them can add all of them up.
    """
    os.environ[FILES] = str(directory)
    # The library looks for the variable only when it is imported.
    values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]


class _Handler(MetricsHandler):
    timeout = READER_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        LOG.debug("metrics: " + format, *args)


class _Server(HTTPServer):
    """One request at a time: one thread, whoever asks how often."""

    allow_reuse_address = True


class _SharedServer(_Server):
    """For a port that several processes listen on; whichever gets a request can answer it."""

    allow_reuse_port = True


class MetricsEndpoint:
    """/metrics in a thread of its own. Does nothing if ``[metrics] enabled`` is false."""

    def __init__(self, conf: cfg.ConfigOpts, collectors: Sequence[Collector] = (), *, shared: bool = False) -> None:
        """``shared``: other workers of the same service listen on the same port. Raises OSError, ValueError."""
        self._server: _Server | None = None
        if not conf.metrics.enabled:
            return
        address, _colon, port = conf.metrics.bind.rpartition(":")
        handler = type("Handler", (_Handler,), {"registry": registry(collectors)})
        self._server = (_SharedServer if shared else _Server)((address.strip("[]"), int(port)), handler)
        # Asks whether it is to end twice a second otherwise, which is long for a shutdown.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics", daemon=True)
        self._thread.start()
        LOG.info("Metrics at %s", self.url)

    @property
    def url(self) -> str | None:
        """None if nothing is served."""
        return None if self._server is None else "http://{}:{}/metrics".format(*self._server.server_address[:2])

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None
