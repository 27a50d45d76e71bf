from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from causeway.rpc import Transport, Transports


@pytest.fixture
def transports() -> Iterator[Transports]:
    conf = cfg.ConfigOpts()
    conf([])
    transports = Transports(conf)
    yield transports
    transports.cleanup()


@pytest.fixture
def transport(transports: Transports) -> Transport:
    """A message queue of the test's own."""
    return transports.get(f"causeway-memory://{uuid.uuid4()}")
