"""Acts as Neutron's metadata agent for guests of the lab: adds the calling server to their requests, and signs it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.clients.network import NetworkClient
from causeway.http.strict import WsgiApp
from causeway.metadata.callers import sign

LOG = logging.getLogger(__name__)


def guests_of(metadata: WsgiApp, network: NetworkClient, conf: cfg.ConfigOpts, network_id: str) -> WsgiApp:
    """The application that guests of one network call."""

    def ask(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        # Headers that a guest sends about itself are not trusted.
        for header in [name for name in environ if name.startswith("HTTP_X_")]:
            del environ[header]
        if not conf.neutron.service_metadata_proxy:
            return metadata(environ, start_response)
        try:
            ports = network.ports_with_address(environ["REMOTE_ADDR"], [network_id])
        except errors.CausewayError as failure:
            LOG.log(
                failure.log_level,
                "A guest of network %s asks for its metadata: %s %s",
                *(network_id, failure.message, failure.details),
            )
            return _refuse("503 Service Unavailable", start_response)
        if len(ports) != 1 or not ports[0].get("device_id"):
            return _refuse("404 Not Found", start_response)
        server_id, secret = ports[0]["device_id"], conf.neutron.metadata_proxy_shared_secret
        environ["HTTP_X_INSTANCE_ID"], environ["HTTP_X_TENANT_ID"] = server_id, ports[0]["project_id"]
        environ["HTTP_X_INSTANCE_ID_SIGNATURE"] = sign(secret, server_id)
        return metadata(environ, start_response)

    return ask


def _refuse(status: str, start_response: Any) -> Iterable[bytes]:
    text = f"{status}\n".encode()
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
