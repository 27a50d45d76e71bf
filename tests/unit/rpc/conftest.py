from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from causeway.rpc import Transport, Transports
from tests.functional.processes.rabbit import rabbit, why_not


@pytest.fixture
def transports() -> Iterator[Transports]:
    conf = cfg.ConfigOpts()
    conf([])
    transports = Transports(conf)
    yield transports
    transports.cleanup()


@pytest.fixture(scope="session")
def rabbit_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with rabbit(tmp_path_factory.mktemp("rpc") / "rabbit") as url:
        yield f"{url}/cloud"


@pytest.fixture(params=["memory", pytest.param("rabbitmq", marks=pytest.mark.integration)])
def transport(request: pytest.FixtureRequest, transports: Transports) -> Transport:
    """A message queue of the test's own; and where there is a RabbitMQ, that (in one process, its queues are shared)."""
    if request.param == "rabbitmq":
        return transports.get(request.getfixturevalue("rabbit_url"))
    return transports.get(f"causeway-memory://{uuid.uuid4()}")
