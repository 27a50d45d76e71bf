"""What the parts of the network client share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import requests

from causeway import errors
from causeway.clients.rights import ONLY_USER, SERVICE
from causeway.clients.session import ServiceApi, ServiceSessions
from causeway.context import RequestContext
from causeway.hardware.port_plugs import refusal_of

PORTS, PORT = "/v2.0/ports", "/v2.0/ports/{port_id}"
BINDING_FAILED, UNBOUND = "binding_failed", "unbound"

Json = dict[str, Any]


class NetworkApi:
    """Calls to the network service."""

    def __init__(self, sessions: ServiceSessions) -> None:
        self._api = ServiceApi(
            sessions, "neutron", "network", version_suffix="/v2.0", retries=sessions.conf.neutron.http_retries
        )
        self._extensions: frozenset[str] | None = None
        self._lock = threading.Lock()

    def _own(
        self, context: RequestContext | None, method: str, route: str, what: str, **more: Any
    ) -> requests.Response:
        """Makes a call with our own credentials and the request id of the context."""
        return self._api.call(context, method, route, what, called_as=SERVICE, **more)

    def forward(self, context: RequestContext, method: str, route: str, what: str, **more: Any) -> Any:
        """Passes a user's call on, only with their token, as `ServiceApi.call`.

        Returns the answer's JSON; None if it is empty.
        """
        answer = self._api.call(context, method, route, what, called_as=ONLY_USER, **more)
        return answer.json() if answer.content else None

    def has_extension(self, alias: str) -> bool:
        """Whether the service has an API extension. The service is asked once."""
        with self._lock:
            if self._extensions is None:
                answer = self._own(None, "GET", "/v2.0/extensions", "list its extensions")
                self._extensions = frozenset(each["alias"] for each in answer.json()["extensions"])
            return alias in self._extensions

    def show_port(self, context: RequestContext | None, port_id: str) -> Json:
        """The port as the service shows it to us, bindings and ``resource_request`` included. Raises PortNotFound.

        This uses our own credentials, so it does not check whether a user may use the port.
        """
        return port_of(self._own(context, "GET", PORT, f"show port {port_id}", **about(port_id)))


def about(port_id: str, missing: errors.NotFound | None = None) -> dict[str, Any]:
    return {
        "port_id": port_id,
        "missing": missing or errors.PortNotFound(f"Port id {port_id} could not be found."),
    }


def port_of(answer: requests.Response) -> Json:
    port: Json = answer.json()["port"]
    return port


def require_pluggable(port_id: str, host: str, vif_type: str | None, details: Mapping[str, Any]) -> None:
    """Raises ClaimRefused if hosts can't plug the port as the service has bound it: another host may be able to."""
    reason = refusal_of(vif_type, details)
    if reason is not None:
        raise errors.ClaimRefused(
            f"The network service has bound port {port_id} in a way that the host does not plug. Ask your cloud's administrator.",
            details=f"host {host}: {reason}",
        )


def binding_failed(port_id: str, host: str) -> errors.ServiceRefused:
    return errors.ServiceRefused(
        f"Binding failed for port {port_id}, please check neutron logs for more information.", details=f"host {host}"
    )
