"""Finds out which server asks.

With the network service's metadata agent (``[neutron] service_metadata_proxy``), the agent names the server and its project, and
signs the server's id with the shared secret. A load balancer in its place names itself, signs that, and passes the guest's
address on. Without an agent, a guest is known by the address that it calls from.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv6Address, ip_address

from oslo_config import cfg

from causeway import errors
from causeway.clients.network import NetworkClient

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """A server that asks. ``project_id``: the server must be of this project."""

    server_id: str
    project_id: str


def check_options(conf: cfg.ConfigOpts) -> None:
    """Raises Misconfigured if there is no secret for signatures, which anybody could make then."""
    if conf.neutron.service_metadata_proxy and not conf.neutron.metadata_proxy_shared_secret:
        raise errors.Misconfigured(
            "[neutron] service_metadata_proxy needs metadata_proxy_shared_secret, the same as in the agent's"
            " metadata_agent.ini."
        )


def caller_of(conf: cfg.ConfigOpts, network: NetworkClient, headers: Mapping[str, str], peer: str) -> Caller:
    """The server that a request comes from. ``headers``: by upper-case names; ``peer``: the address that it comes from.

    Raises BadRequest, Forbidden (the signature is wrong), NotFound, and what the network client raises.
    """
    if not conf.neutron.service_metadata_proxy:
        if "X-INSTANCE-ID" in headers:
            LOG.warning("A request has X-Instance-ID, which is ignored: see [neutron] service_metadata_proxy")
        return _of_address(network, _address(conf, headers, peer), None)
    secret: str = conf.neutron.metadata_proxy_shared_secret
    provider = headers.get("X-METADATA-PROVIDER")
    if provider:
        _check_signature(secret, provider, headers.get("X-METADATA-PROVIDER-SIGNATURE"), peer)
        address = _parsed(_needed(headers, "X-Forwarded-For").split(",")[0])
        networks = network.networks_of_provider(provider)
        if not networks:
            raise errors.BadRequest("No network has this metadata provider.")
        try:
            return _of_address(network, address, networks)
        except errors.NotFound as failure:
            raise errors.BadRequest(failure.message) from None
    server_id, project_id = _needed(headers, "X-Instance-ID"), _needed(headers, "X-Tenant-ID")
    _check_signature(secret, server_id, headers.get("X-INSTANCE-ID-SIGNATURE"), peer)
    return Caller(server_id, project_id)


def sign(secret: str, text: str) -> str:
    """The agent's signature of a text."""
    return hmac.new(secret.encode(), text.encode(), sha256).hexdigest()


def _check_signature(secret: str, text: str, signature: str | None, peer: str) -> None:
    if not hmac.compare_digest(sign(secret, text).encode(), (signature or "").encode()):
        LOG.warning("A request for %s from %s has a wrong signature: does the agent have the same secret?", text, peer)
        raise errors.Forbidden("Invalid proxy request signature.")


def _needed(headers: Mapping[str, str], name: str) -> str:
    found = headers.get(name.upper())
    if not found:
        raise errors.BadRequest(f"{name} header is missing from request.")
    return found


def _address(conf: cfg.ConfigOpts, headers: Mapping[str, str], peer: str) -> str:
    forwarded = headers.get("X-FORWARDED-FOR") if conf.api.use_forwarded_for else None
    # The last address is the one that the proxy itself saw; those before it come from its client.
    return _parsed(forwarded.split(",")[-1] if forwarded else peer)


def _parsed(text: str) -> str:
    """Raises BadRequest."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        raise errors.BadRequest("The caller's address is not an IP address.") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def _of_address(network: NetworkClient, address: str, networks: list[str] | None) -> Caller:
    """The owner of the only port with this address. It is never remembered, since the address may get another owner."""
    ports = network.ports_with_address(address, networks)
    if len(ports) != 1 or not ports[0].get("device_id"):
        # Networks of different projects may have the same addresses.
        LOG.info("%s ports have the address %s: which server asks is unknown", len(ports) or "No", address)
        raise errors.NotFound("Which server asks is unknown.")
    return Caller(ports[0]["device_id"], ports[0]["project_id"])
