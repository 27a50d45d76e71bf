"""/metrics of a process: off unless asked for, one thread, and what workers counted added up."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import requests
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from causeway.conf import new_config
from causeway.metrics import TAKEOVERS, endpoint
from causeway.metrics.endpoint import MetricsEndpoint


class Answer:
    def collect(self) -> Iterable[Metric]:
        return [GaugeMetricFamily("answer", "Of everything.", value=42)]


def test_nothing_is_served_by_default() -> None:
    assert MetricsEndpoint(new_config()).url is None


def test_metrics_of_the_process_and_its_parts_are_served() -> None:
    TAKEOVERS.labels("test").inc()
    served = MetricsEndpoint(new_config(metrics={"enabled": True, "bind": "127.0.0.1:0"}), [Answer()])
    try:
        assert served.url is not None
        text = requests.get(served.url, timeout=60).text
        for expected in (
            'causeway_operation_takeovers_total{recipe="test"} 1.0',
            "answer 42.0",
            "process_resident_memory_bytes",
        ):
            assert expected in text
    finally:
        served.stop()
    assert served.url is None


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        MetricsEndpoint(new_config(metrics={"enabled": True, "bind": f"127.0.0.1:{taken.getsockname()[1]}"}))


WORKERS = """
import os, sys
from pathlib import Path
from causeway import metrics
from causeway.metrics import endpoint
endpoint.count_into_files(Path(sys.argv[1]))
for _worker in range(3):
    if not os.fork():
        metrics.MOVE_BYTES.labels("sent").inc(5)
        os._exit(0)
    os.wait()
from prometheus_client import generate_latest
print(generate_latest(endpoint.registry()).decode())
"""


def test_forked_workers_are_added_up(tmp_path: Path) -> None:
    assert endpoint.FILES == "PROMETHEUS_MULTIPROC_DIR"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORKERS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert 'causeway_move_bytes_total{direction="sent"} 15.0' in done.stdout
