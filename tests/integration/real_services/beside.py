"""A deployment of ours beside the real services: who wants one gives its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from causeway.embedded.settings import POLICY
from tests.functional.processes.deployment import Deployment
from tests.integration.real_services.services import RealServices

D = TypeVar("D", bound=Deployment)
Surround = Callable[[Deployment], None]


@contextmanager
def deployed(
    build: Callable[[Surround], D],
    *,
    new_database: Callable[[str], str],
    queue: str,
    token_seconds: int = 3600,
    prepare: Callable[[RealServices], None] = lambda _services: None,
) -> Iterator[tuple[D, RealServices]]:
    """What ``build`` makes, started, with the services around it; all of it has ended afterwards.

    ``queue`` is the URL of RabbitMQ. ``prepare`` is called when the services run, before ours start. Processes of ours must end
    by themselves; after a failure they are killed.
    """

    def surround(cloud: Deployment) -> None:
        services.start()
        policy = cloud.directory / "policy.yaml"
        policy.write_text(POLICY)
        services.write_client_files(cloud.directory, policy)
        prepare(services)

    cloud = build(surround)
    services = RealServices(
        cloud.directory / "services",
        new_database=new_database,
        queue=f"{queue}/services",
        compute_url=f"{cloud.api_url}/v2.1",
        hosts=cloud.hosts,
        token_seconds=token_seconds,
    )
    try:
        cloud.start()
        yield cloud, services
        cloud.stop()
    finally:
        try:
            if cloud.processes:
                cloud.kill()
        finally:
            services.stop()
