from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from causeway.rpc import Transport, Transports

RABBIT_URL = os.environ.get("CAUSEWAY_TEST_RABBIT_URL")


@pytest.fixture
def transports() -> Iterator[Transports]:
    conf = cfg.ConfigOpts()
    conf([])
    transports = Transports(conf)
    yield transports
    transports.cleanup()


@pytest.fixture(
    params=[
        "memory",
        pytest.param(
            "rabbitmq",
            marks=[
                pytest.mark.integration,
                pytest.mark.skipif(RABBIT_URL is None, reason="CAUSEWAY_TEST_RABBIT_URL names no RabbitMQ"),
            ],
        ),
    ]
)
def transport(request: pytest.FixtureRequest, transports: Transports) -> Transport:
    """A message queue of the test's own; and where there is a RabbitMQ, that (in one process, its queues are shared)."""
    return transports.get(RABBIT_URL if request.param == "rabbitmq" else f"causeway-memory://{uuid.uuid4()}")
