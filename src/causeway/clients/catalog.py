"""Where the service catalog says that users find the Compute API."""

from __future__ import annotations

from dataclasses import dataclass

from keystoneauth1 import exceptions as keystone_errors

from causeway import errors
from causeway.clients.connections import ServiceSessions

_OPTIONS = "service_user"


@dataclass(frozen=True)
class Endpoint:
    """``interface``: public, internal or admin."""

    interface: str
    region: str | None
    url: str


def compute_endpoints(sessions: ServiceSessions) -> list[Endpoint]:
    """All endpoints of type compute, in all regions. Raises ServiceFailed."""
    credentials = sessions.credentials(_OPTIONS)
    if credentials is None:
        raise errors.ServiceFailed(
            "The catalog can't be read: this service has no credentials of its own.",
            details=f"set auth_type and the options of that plug-in in [{_OPTIONS}]",
        )
    try:
        catalog = credentials.auth.get_access(credentials.session).service_catalog
        found = catalog.get_endpoints_data(service_type="compute").get("compute") or []
    except keystone_errors.ClientException as error:
        raise errors.ServiceFailed(
            "The identity service did not show its catalog. Try again later.",
            details=f"{type(error).__name__}: {error}",
        ) from error
    return [Endpoint(each.interface, each.region_name, each.url) for each in found if each.url]


__all__ = ["Endpoint", "compute_endpoints"]
