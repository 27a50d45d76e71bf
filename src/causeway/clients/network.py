"""The network service (Network API v2.0 with ``binding-extended``).

Ports are made, bound and read with our own credentials, since users may not see bindings. What a user names is read with the
user's token first: see `causeway.clients.network_requests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from causeway import errors
from causeway.clients.answers import kind_of, message_of
from causeway.clients.network_api import (
    BINDING_FAILED,
    PORT,
    PORTS,
    Json,
    about,
    binding_failed,
    port_of,
    require_pluggable,
)
from causeway.clients.network_bindings import PortBinding, PortBindings
from causeway.clients.network_cache import NetworkCache
from causeway.clients.network_info import group_names, order_ports, vif_of
from causeway.clients.network_migrations import PortMigrations
from causeway.clients.network_requests import NetworkRequests
from causeway.clients.port_owners import PortOwner
from causeway.clients.port_requests import ALLOCATION
from causeway.clients.session import ServiceSessions
from causeway.context import RequestContext
from causeway.hardware.port_devices import PROFILE_KEYS
from causeway.model.instance import Instance
from causeway.model.network import Vif

PAGE_SIZE = 1000
DESCRIPTIONS = "standard-attr-description"


# Neutron's agents that wire no ports of servers. Others may, also those of other vendors.
_NOT_WIRING = frozenset(
    {
        "BGP dynamic routing agent",
        "DHCP agent",
        "L3 agent",
        "Metadata agent",
        "Metering agent",
        "OVN Metadata agent",
        "OVN Neutron agent",
    }
)


# The fields of ports that the audit reads.
_AUDITED = (
    "id",
    "device_id",
    "device_owner",
    "status",
    "admin_state_up",
    "mac_address",
    "binding:host_id",
    "project_id",
    "updated_at",
)


def mark_of(instance_uuid: str, operation_id: str | None = None) -> str:
    """The description of ports that are made for a server. It distinguishes them from users' own ports, even without a record."""
    mark = f"Made by Compute for server {instance_uuid}, and deleted with it."
    return mark if operation_id is None else f"{mark} Operation {operation_id}."


def is_made_for(port: Mapping[str, Any], instance_uuid: str) -> bool:
    """Whether `create_port` made a port for this server."""
    return str(port.get("description") or "").startswith(mark_of(instance_uuid))


def is_made_by(port: Mapping[str, Any], operation_id: str) -> bool:
    """Whether an operation had `create_port` make a port."""
    return str(port.get("description") or "").endswith(f" Operation {operation_id}.")


def without_host(profile: Mapping[str, Any]) -> Json:
    """A binding profile without the parts that depend on the host: the device, and the providers of its resources."""
    return {key: value for key, value in profile.items() if key not in PROFILE_KEYS and key != ALLOCATION}


class NetworkClient(NetworkRequests, PortBindings, PortMigrations):
    """Ports of servers, their bindings, and what users may request."""

    def __init__(self, sessions: ServiceSessions) -> None:
        super().__init__(sessions)
        self._cache = NetworkCache(self._read_networks, self._read_subnets, self._read_groups)

    def ports_of_server(self, context: RequestContext | None, owner: PortOwner) -> list[Json]:
        """All ports of a server, as the service shows them, without strangers' (`causeway.clients.port_owners`)."""
        answer = self._own(context, "GET", PORTS, "list ports", query={"device_id": owner.uuid})
        return [port for port in answer.json()["ports"] if owner.has(port)]

    def ports_of_servers(self, uuids: Sequence[str]) -> list[Json]:
        """The ports with these servers' ids, strangers' too: see `causeway.clients.port_owners`."""
        if not uuids:
            return []
        query = [("device_id", uuid) for uuid in uuids]
        ports: list[Json] = self._own(None, "GET", PORTS, "list ports", query=query).json()["ports"]
        return ports

    def ports_with_address(self, address: str, network_ids: Sequence[str] | None = None) -> list[Json]:
        """device_id and project_id of the ports with a fixed address; ``network_ids``: in these networks."""
        query = [("fixed_ips", f"ip_address={address}"), ("fields", "device_id"), ("fields", "project_id")]
        query += [("network_id", each) for each in network_ids or ()]
        ports: list[Json] = self._own(None, "GET", PORTS, "list ports", query=query).json()["ports"]
        return ports

    def networks_of_provider(self, provider_id: str) -> list[str]:
        """The networks whose subnets name this provider of metadata (an extension that not every service has)."""
        named = "advanced_service_providers"
        query = [(named, provider_id), ("fields", "network_id"), ("fields", named)]
        subnets = self._own(None, "GET", "/v2.0/subnets", "list subnets", query=query).json()["subnets"]
        # A service without the extension may show all subnets.
        return sorted({subnet["network_id"] for subnet in subnets if provider_id in (subnet.get(named) or ())})

    def list_ports(self, context: RequestContext | None) -> list[Json]:
        """Every port of the cloud, with those fields that the audit reads. Page by page."""
        return [port for page in self.port_pages(context) for port in page]

    def port_pages(self, context: RequestContext | None, *more: str) -> Iterator[list[Json]]:
        """The same ports, for those who need not have all of them at once. ``more``: fields of ports."""
        fields = [("fields", name) for name in (*_AUDITED, *more)]
        query: list[tuple[str, str]] = [("limit", str(PAGE_SIZE)), ("sort_key", "id"), ("sort_dir", "asc"), *fields]
        marker: list[tuple[str, str]] = []
        while True:
            page = self._own(context, "GET", PORTS, "list ports", query=[*query, *marker]).json()["ports"]
            yield page
            if len(page) < PAGE_SIZE:
                return
            marker = [("marker", page[-1]["id"])]

    def wiring_agents(self, context: RequestContext | None) -> dict[str, dict[str, bool]]:
        """Host -> type of agent -> whether it is alive, of the agents that wire ports. Other hosts are missing."""
        found: dict[str, dict[str, bool]] = {}
        for agent in self._own(context, "GET", "/v2.0/agents", "list agents").json()["agents"]:
            if agent["agent_type"] not in _NOT_WIRING:
                found.setdefault(agent["host"], {})[agent["agent_type"]] = bool(agent["alive"])
        return found

    def create_port(
        self,
        context: RequestContext,
        project_id: str,
        instance_uuid: str,
        network_id: str,
        *,
        fixed_ip: str | None = None,
        security_groups: list[str] | None = None,
        host: str | None = None,
        device_owner: str = "compute:nova",
        vnic_type: str | None = None,
        dns_name: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        operation_id: str | None = None,
    ) -> Vif:
        """Makes a port for a server, bound to ``host`` if one is given. ``security_groups``: ids; None: the default one.

        ``operation_id``: of the operation that needs it (`is_made_by`).

        Raises NetworkNotFound, OverQuota, Conflict (the address is in use), BadRequest (the address does not fit, none is left,
        or the network's ports ask for resources).
        """
        wanted: Json = {
            "network_id": network_id,
            "project_id": project_id,
            "device_id": instance_uuid,
            "device_owner": device_owner,
            "admin_state_up": True,
        }
        given = {
            "fixed_ips": [{"ip_address": fixed_ip}] if fixed_ip else None,
            "security_groups": security_groups,
            "binding:host_id": host,
            "binding:vnic_type": vnic_type,
            "dns_name": self._dns_name(dns_name),
            "name": name,
            "description": mark_of(instance_uuid, operation_id) if self.has_extension(DESCRIPTIONS) else None,
        }
        wanted.update({key: value for key, value in given.items() if value is not None})
        answer = self._own(
            context,
            "POST",
            PORTS,
            f"make a port on network {network_id}",
            body={"port": wanted},
            accept=(400, 409),
            missing=errors.NetworkNotFound(f"Network {network_id} could not be found."),
        )
        if answer.status_code >= 400:
            raise _port_refused(kind_of(answer), message_of(answer), network_id, fixed_ip)
        port = port_of(answer)
        if port.get("resource_request"):
            # No resources were claimed for this port: that is only possible for ports that existed when the server was placed.
            self.delete_port(context, port["id"])
            raise errors.BadRequest(
                f"Using networks with QoS policy is not supported for instance {instance_uuid}. (Network ID is {network_id})"
            )
        _require_bound(port, host)
        vif = vif_of(port, self._cache.of_ports([port]), {})
        vif.tag = tag
        return vif

    def _dns_name(self, wanted: str | None) -> str | None:
        """The DNS name for a port; None if the network service has no such attribute, and would refuse it."""
        return wanted if wanted is not None and self.has_extension("dns-integration") else None

    def update_port(self, context: RequestContext | None, port_id: str, changes: Mapping[str, Any]) -> Json:
        """Changes attributes of a port. Returns the port afterwards."""
        body = {"port": dict(changes)}
        what = f"update port {port_id}"
        return port_of(self._own(context, "PUT", PORT, what, body=body, is_users=True, **about(port_id)))

    def bind_port(
        self,
        context: RequestContext | None,
        port_id: str,
        host: str,
        device_id: str,
        device_owner: str,
        profile: Mapping[str, Any] | None = None,
        dns_name: str | None = None,
    ) -> Json:
        """Gives a port to a server on a host, which becomes its only active binding.

        Raises PortNotFound, RequestRefused, and ServiceRefused if it could not be bound.
        """
        changes: Json = {"binding:host_id": host, "device_id": device_id, "device_owner": device_owner}
        if profile is not None:
            changes["binding:profile"] = dict(profile)
        if self._dns_name(dns_name) is not None:
            changes["dns_name"] = dns_name
        port = self.update_port(context, port_id, changes)
        _require_bound(port, host)
        return port

    def unbind_port(
        self, context: RequestContext | None, port_id: str, profile: Mapping[str, Any] | None = None
    ) -> None:
        """Detaches a port from its server and host, if the port exists. Everything else of the port stays.

        ``profile``: its binding profile, of which the parts that depend on the host are removed.
        """
        kept = without_host(profile or {})
        with suppress(errors.PortNotFound):
            self.update_port(
                context,
                port_id,
                {"device_id": "", "device_owner": "", "binding:host_id": "", "binding:profile": kept},
            )

    def delete_port(self, context: RequestContext | None, port_id: str) -> None:
        """Deletes a port, if it exists."""
        with suppress(errors.PortNotFound):
            self._own(context, "DELETE", PORT, f"delete port {port_id}", **about(port_id))

    def network_info(
        self,
        context: RequestContext | None,
        instance: Instance,
        ports: list[Json] | None = None,
        *,
        refresh_floating_ips: bool = False,
    ) -> list[Vif]:
        """A server's ports as they are now, in the order of its record, whose tags and ``preserve_on_delete`` are kept.

        A port that is not in the record was attached by a process that died before it recorded that. If it may be the user's
        own, it is not deleted with the server.

        Makes one call for the ports; networks, subnets and security groups are remembered for some seconds. Floating IPs are
        those of the record; they are read only if a port is not in it, or with ``refresh_floating_ips``.
        """
        known = {vif.id: vif for vif in instance.network_info}
        if ports is None:
            ports = self.ports_of_server(context, PortOwner.of(instance))
        if not ports:
            return []
        around = self._cache.of_ports(ports)
        floating: dict[tuple[str, str], list[str]] = {}
        if refresh_floating_ips or any(port["id"] not in known for port in ports):
            floating = self._floating_ips(context, [port["id"] for port in ports])
        else:
            for vif in known.values():
                floating.update({(vif.id, ip.address): list(ip.floating_ips) for ip in vif.fixed_ips})
        vifs = []
        for port in order_ports(ports, list(known)):
            vif = vif_of(port, around, floating)
            if port["id"] in known:
                vif.tag, vif.preserve_on_delete = known[port["id"]].tag, known[port["id"]].preserve_on_delete
            else:
                vif.preserve_on_delete = not is_made_for(port, instance.uuid)
            vifs.append(vif)
        return vifs

    def vif_of_port(
        self, context: RequestContext | None, port: Json, *, tag: str | None = None, preserve_on_delete: bool = True
    ) -> Vif:
        """A port that existed before its server, as a port of the server."""
        vif = vif_of(port, self._cache.of_ports([port]), self._floating_ips(context, [port["id"]]))
        vif.tag, vif.preserve_on_delete = tag, preserve_on_delete
        return vif

    def group_names(self, ports: list[Json]) -> dict[str, list[str]]:
        """The names of the security groups of ports, by the ports' ids."""
        groups = self._cache.groups_of_ports(ports)
        return {port["id"]: group_names(port, groups) for port in ports}

    # Reading what changes rarely

    def _read_networks(self, ids: list[str]) -> list[Json]:
        answer = self._own(None, "GET", "/v2.0/networks", "list networks", query={"id": ids})
        networks: list[Json] = answer.json()["networks"]
        return networks

    def _read_subnets(self, ids: list[str]) -> list[Json]:
        answer = self._own(None, "GET", "/v2.0/subnets", "list subnets", query={"id": ids})
        subnets: list[Json] = answer.json()["subnets"]
        return subnets

    def _read_groups(self, ids: list[str]) -> list[Json]:
        query = [*(("id", each) for each in ids), ("fields", "id"), ("fields", "name")]
        answer = self._own(None, "GET", "/v2.0/security-groups", "list security groups", query=query)
        groups: list[Json] = answer.json()["security_groups"]
        return groups

    def _floating_ips(self, context: RequestContext | None, port_ids: list[str]) -> dict[tuple[str, str], list[str]]:
        answer = self._own(
            context, "GET", "/v2.0/floatingips", "list floating IPs", query={"port_id": port_ids}, accept=(404,)
        )
        found: dict[tuple[str, str], list[str]] = {}
        if answer.status_code == 404:
            # No router extension: no floating IPs.
            return found
        for each in answer.json()["floatingips"]:
            found.setdefault((each["port_id"], each["fixed_ip_address"]), []).append(each["floating_ip_address"])
        return found


def _require_bound(port: Json, host: str | None) -> None:
    if host and port.get("binding:vif_type") == BINDING_FAILED:
        raise binding_failed(port["id"], host)
    if host and port.get("binding:host_id") == host:
        require_pluggable(port["id"], host, port.get("binding:vif_type"), port.get("binding:vif_details") or {})


_REFUSALS: dict[str, Callable[[str, str, str | None], errors.CausewayError]] = {
    "OverQuota": lambda *_: errors.OverQuota("Maximum number of ports exceeded"),
    "IpAddressInUse": lambda _message, network, address: errors.Conflict(
        f"Fixed IP address {address} is already in use on network {network}."
    ),
    "IpAddressGenerationFailure": lambda _message, network, _address: errors.BadRequest(
        f"No fixed IP addresses available for network: {network}"
    ),
    "InvalidIpForNetwork": lambda _message, network, address: errors.BadRequest(
        f"Fixed IP {address} is not a valid ip address for network {network}."
    ),
}
_SAME = {
    "IpAddressAlreadyAllocated": "IpAddressInUse",
    "ExternalIpAddressExhausted": "IpAddressGenerationFailure",
    "InvalidIpForSubnet": "InvalidIpForNetwork",
}


def _port_refused(kind: str, message: str, network_id: str, address: str | None) -> errors.CausewayError:
    make = _REFUSALS.get(_SAME.get(kind, kind))
    if make is not None:
        error = make(message, network_id, address)
        error.details = message
        return error
    return errors.RequestRefused(
        f"The network service refused to make a port on network {network_id}: {message}", details=kind
    )


__all__ = ["NetworkClient", "PortBinding"]
