"""Deployments whose parts can be struck: everything real, or everything but the services around."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from tests.functional.processes.deployment import OPTIONS, Deployment
from tests.functional.processes.rabbit import Broker, own_broker
from tests.integration.database_servers import Server, own_server
from tests.integration.real_services.beside import Surround, deployed
from tests.integration.real_services.services import RealServices

# Hosts of different cells do not reach one another: what is struck in the middle of an upload is uploaded.
APART = {**OPTIONS, "moves": {**OPTIONS["moves"], "direct": "never"}}


class Part(Protocol):
    """A server of somebody else's."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


@dataclass
class Site:
    """A deployment whose parts can be struck."""

    #: of the database
    kind: str
    cloud: Deployment
    broker: Broker
    database: Server
    services: RealServices | None = None

    def ports(self) -> list[int]:
        """Of all that a compute talks to."""
        broker = int(self.broker.url.rpartition(":")[2])
        if self.services is not None:
            return [broker, *self.services.addresses.ports.values()]
        devcloud = urlsplit(self.cloud.member.session.get_endpoint(service_type="image")).port
        assert devcloud is not None
        return [broker, devcloud]


@contextmanager
def site_with_devcloud(directory: Path, kind: str) -> Iterator[Site]:
    """Everything real but the services around."""
    with own_server(kind) as (new_database, server), own_broker(directory / "rabbit") as broker:
        cloud = Deployment(directory, broker.url, new_database=new_database, cell_conductors=True, options=APART)
        try:
            cloud.start()
            yield Site(kind, cloud, broker, server)
        except BaseException:
            cloud.kill()
            raise
        cloud.stop()


@contextmanager
def site_with_services(directory: Path, kind: str) -> Iterator[Site]:
    """Everything real."""
    with own_server(kind) as (new_database, server), own_broker(directory / "rabbit") as broker:

        def build(surround: Surround) -> Deployment:
            return Deployment(
                directory, broker.url, new_database=new_database, surround=surround, cell_conductors=True, options=APART
            )

        with deployed(build, new_database=new_database, queue=broker.url) as (cloud, services):
            yield Site(kind, cloud, broker, server, services)
