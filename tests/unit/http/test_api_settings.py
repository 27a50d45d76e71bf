"""How gunicorn is set to serve the API."""

from __future__ import annotations

from causeway.cli.web_processes import ApiProcesses
from causeway.conf import new_config
from causeway.http.server import KEEP


def test_a_connection_outlives_the_pause_of_a_client_that_polls() -> None:
    served = ApiProcesses(new_config(), (), bind="127.0.0.1:0", workers=1, threads=1)
    assert served.cfg.keepalive == KEEP > 60
