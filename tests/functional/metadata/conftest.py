"""The metadata service on real databases, with a network service that says what a test wants.

``guests.get(server, path)`` asks as the network service's metadata agent does for a guest: with its headers and signature.
"""

from __future__ import annotations

from typing import Any

import falcon.testing
import pytest

from causeway.clients.session import ServiceSessions
from causeway.clients.vendordata import Vendordata
from causeway.metadata.app import MetadataServices, build_app
from causeway.metadata.callers import sign
from causeway.model.instance import Instance
from tests.functional.conftest import Cloud

SECRET = "of-agent-and-service"


class Guests:
    """What guests of a cloud see of the service."""

    def __init__(self, app: Any) -> None:
        self._client = falcon.testing.TestClient(app)

    def get(self, server: Instance, path: str, **options: Any) -> Any:
        return self.ask("GET", path, headers=signed(server), **options)

    def post(self, server: Instance, path: str, body: bytes) -> Any:
        return self.ask("POST", path, headers=signed(server), body=body)

    def ask(self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any) -> Any:
        return self._client.simulate_request(method, path, headers=headers, **options)


def signed(server: Instance, **changes: str) -> dict[str, str]:
    """The headers of the agent."""
    return {
        "X-Instance-ID": server.uuid,
        "X-Tenant-ID": server.project_id,
        "X-Instance-ID-Signature": sign(SECRET, server.uuid),
        "X-Forwarded-For": "10.0.0.5",
    } | changes


@pytest.fixture
def guests(cloud: Cloud) -> Guests:
    """Behind the agent, and nothing is remembered; tests set other options before they use it."""
    cloud.option("neutron", "service_metadata_proxy", True)
    cloud.option("neutron", "metadata_proxy_shared_secret", SECRET)
    cloud.option("api", "metadata_cache_expiration", 0)
    return Guests(application(cloud))


def application(cloud: Cloud) -> Any:
    services = cloud.services
    vendordata = Vendordata(ServiceSessions(services.conf))
    return build_app(MetadataServices(services.conf, services.api, services.cells, services.network, vendordata))
