"""The network service (Network API v2.0 with ``binding-extended``).

Ports are made, bound and read with our own credentials (users may not see bindings); what a user may use is asked with
theirs. What is parsed is in `causeway.clients.network_info`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import requests

from causeway import errors
from causeway.clients.network_cache import NetworkCache
from causeway.clients.network_info import order_ports, vif_of
from causeway.clients.session import ServiceApi, ServiceSessions, kind_of, message_of
from causeway.context import RequestContext
from causeway.model.network import RequestedNetwork, Vif

PORTS, PORT = "/v2.0/ports", "/v2.0/ports/{port_id}"
BINDINGS, BINDING = PORT + "/bindings", PORT + "/bindings/{host}"
BINDING_FAILED = "binding_failed"
UNLIMITED = -1
PAGE_SIZE = 1000

Json = dict[str, Any]


@dataclass
class PortBinding:
    """A port's binding to one host. ``status`` is ACTIVE for the one in force."""

    host: str
    status: str
    vnic_type: str = "normal"
    vif_type: str | None = None
    vif_details: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)


class NetworkClient:
    def __init__(self, sessions: ServiceSessions) -> None:
        self._api = ServiceApi(
            sessions, "neutron", "network", version_suffix="/v2.0", retries=sessions.conf.neutron.http_retries
        )
        self._cache = NetworkCache(self._read_networks, self._read_subnets)
        self._extensions: frozenset[str] | None = None
        self._lock = threading.Lock()

    def _own(
        self, context: RequestContext | None, method: str, route: str, what: str, **more: Any
    ) -> requests.Response:
        """A call with our own credentials; of the context only the request id goes with it."""
        return self._api.call(context, method, route, what, as_service=True, **more)

    # What a user asks for

    def list_networks(
        self, context: RequestContext, project_id: str, ids: Iterable[str] = (), *, external: bool = False
    ) -> list[Json]:
        """The networks that the project may attach servers to: its own and shared ones; others' external ones too if
        ``external``."""
        query = {"id": sorted(set(ids))} if ids else {}
        answer = self._api.call(context, "GET", "/v2.0/networks", "list networks", query=query)
        # With a user's token the service shows what is theirs, what is shared with them, and external networks.
        trusted = self._api.acts_as_user(context)

        def usable(network: Json) -> bool:
            if network.get("project_id", network.get("tenant_id")) == project_id or network.get("shared"):
                return True
            if network.get("router:external"):
                return external
            return trusted

        return [network for network in answer.json()["networks"] if usable(network)]

    def validate_networks(
        self,
        context: RequestContext,
        requested: list[RequestedNetwork],
        count: int,
        project_id: str,
        *,
        external: bool = False,
    ) -> list[RequestedNetwork]:
        """Checks what a create request asks for ``count`` servers; returns it with the networks of given ports filled in.

        An empty request means the one network that the project has (none: no network at all). ``external``: whether the
        caller may attach to external networks of others. Codes as in the Compute API: BadRequest for what is not there or
        not usable, Conflict for several possible networks or a port in use, Forbidden for an external network, OverQuota.
        """
        if not requested:
            available = [
                each for each in self.list_networks(context, project_id, external=False) if each.get("subnets")
            ]
            if len(available) > 1:
                raise errors.Conflict("Multiple possible networks found, use a Network ID to be more specific.")
            requested = [RequestedNetwork(network_id=network["id"]) for network in available]
        else:
            requested = [self._with_port(context, each, project_id, count) for each in requested]
            self._check_networks(context, requested, project_id, external)
        new_ports = count * sum(1 for each in requested if each.port_id is None)
        if new_ports:
            self._check_port_quota(context, project_id, new_ports)
        return requested

    def _with_port(
        self, context: RequestContext, requested: RequestedNetwork, project_id: str, count: int
    ) -> RequestedNetwork:
        if requested.port_id is None:
            if requested.network_id is None:
                raise errors.BadRequest("Each requested network needs a network or a port.")
            return requested
        if count > 1:
            raise errors.BadRequest("Unable to launch multiple instances with a single configured port ID.")
        try:
            port = self.show_port(context, requested.port_id)
        except errors.PortNotFound as error:
            raise errors.BadRequest(error.message, details=error.details) from error
        if port.get("device_id"):
            raise errors.Conflict(f"Port {port['id']} is still in use.")
        if port.get("project_id", port.get("tenant_id")) != project_id and not context.is_admin:
            raise errors.BadRequest(f"Port {port['id']} is not usable for this instance: it is another project's.")
        if not port.get("fixed_ips") and port.get("ip_allocation") != "deferred":
            raise errors.BadRequest(f"Port {port['id']} requires a FixedIP in order to be used.")
        return RequestedNetwork(port["network_id"], port["id"], requested.fixed_ip, requested.tag)

    def _check_networks(
        self, context: RequestContext, requested: list[RequestedNetwork], project_id: str, external: bool
    ) -> None:
        wanted = {each.network_id for each in requested if each.port_id is None and each.network_id is not None}
        if not wanted:
            return
        found = {each["id"]: each for each in self.list_networks(context, project_id, wanted, external=True)}
        for network_id in sorted(wanted):
            network = found.get(network_id)
            if network is None:
                raise errors.BadRequest(f"Network {network_id} could not be found.")
            own = network.get("project_id", network.get("tenant_id")) == project_id or network.get("shared")
            if network.get("router:external") and not own and not external:
                raise errors.Forbidden(f"It is not allowed to create an interface on external network {network_id}")
            if not network.get("subnets"):
                raise errors.BadRequest(f"Network {network_id} requires a subnet in order to boot instances on.")
        self._check_fixed_ips(context, requested)

    def _check_fixed_ips(self, context: RequestContext, requested: list[RequestedNetwork]) -> None:
        for each in requested:
            if each.port_id is not None or each.fixed_ip is None:
                continue
            query = [
                ("network_id", each.network_id),
                ("fixed_ips", f"ip_address={each.fixed_ip}"),
                ("fields", "id"),
            ]
            ports = self._own(context, "GET", PORTS, "list ports", query=query).json()["ports"]
            if ports:
                raise errors.BadRequest(
                    f"Fixed IP address {each.fixed_ip} is already in use on network {each.network_id}."
                )

    def _check_port_quota(self, context: RequestContext, project_id: str, wanted: int) -> None:
        quota = self.port_quota(context, project_id)
        if quota is not None and quota[1] + wanted > quota[0]:
            raise errors.OverQuota("Maximum number of ports exceeded")

    def port_quota(self, context: RequestContext | None, project_id: str) -> tuple[int, int] | None:
        """(limit, used) of the project's ports, or None if there is no limit."""
        answer = self._own(
            context,
            "GET",
            "/v2.0/quotas/{project_id}/details",
            f"show the quota of project {project_id}",
            accept=(404,),
            project_id=project_id,
        )
        if answer.status_code != 404:
            port = answer.json()["quota"]["port"]
            return None if port["limit"] == UNLIMITED else (port["limit"], port["used"] + port.get("reserved", 0))
        answer = self._own(
            context,
            "GET",
            "/v2.0/quotas/{project_id}",
            f"show the quota of project {project_id}",
            project_id=project_id,
        )
        limit = answer.json()["quota"]["port"]
        if limit == UNLIMITED:
            return None
        query = {"project_id": project_id, "fields": "id"}
        return limit, len(self._own(context, "GET", PORTS, "list ports", query=query).json()["ports"])

    def security_group_ids(self, context: RequestContext, project_id: str, names: Iterable[str]) -> list[str]:
        """The ids of security groups given by name or id; BadRequest for an unknown, Conflict for an ambiguous one."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return []
        groups = self.list_security_groups(context, project_id=project_id)
        found = []
        for name in wanted:
            ids = [each["id"] for each in groups if each["id"] == name] or [
                each["id"] for each in groups if each["name"] == name
            ]
            if not ids:
                raise errors.BadRequest(f"Security group {name} not found.")
            if len(ids) > 1:
                raise errors.Conflict(
                    f"Multiple security groups found matching '{name}'. Use an ID to be more specific."
                )
            found.append(ids[0])
        return found

    def list_security_groups(
        self, context: RequestContext | None, *, project_id: str | None = None, ids: Iterable[str] = ()
    ) -> list[Json]:
        """Security groups (id, name, project_id, ...) of a project, or those of given ids."""
        query: list[tuple[str, str]] = [("id", each) for each in sorted(set(ids))]
        if project_id is not None:
            query.append(("project_id", project_id))
        answer = self._api.call(context, "GET", "/v2.0/security-groups", "list security groups", query=query)
        groups: list[Json] = answer.json()["security_groups"]
        return groups

    # Ports

    def show_port(self, context: RequestContext | None, port_id: str) -> Json:
        """The port as the service shows it to us, bindings and ``resource_request`` included. Raises PortNotFound.

        Read with our own credentials: whether the caller may use it is for the caller to check.
        """
        return _port(self._own(context, "GET", PORT, f"show port {port_id}", **_about(port_id)))

    def ports_of_server(self, context: RequestContext | None, instance_uuid: str) -> list[Json]:
        """All ports of a server, as the service shows them."""
        answer = self._own(context, "GET", PORTS, "list ports", query={"device_id": instance_uuid})
        ports: list[Json] = answer.json()["ports"]
        return ports

    def list_ports(self, context: RequestContext | None) -> list[Json]:
        """Every port of the cloud: id, device_id, device_owner, status, binding:host_id. Page by page."""
        found: list[Json] = []
        fields = [("fields", name) for name in ("id", "device_id", "device_owner", "status", "binding:host_id")]
        query: list[tuple[str, str]] = [("limit", str(PAGE_SIZE)), ("sort_key", "id"), ("sort_dir", "asc"), *fields]
        while True:
            marker = [("marker", found[-1]["id"])] if found else []
            page = self._own(context, "GET", PORTS, "list ports", query=[*query, *marker]).json()["ports"]
            found.extend(page)
            if len(page) < PAGE_SIZE:
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
    ) -> Vif:
        """Makes a port for a server, bound to ``host`` if one is given. ``security_groups``: ids; None: the default one.

        Raises NetworkNotFound, OverQuota, Conflict (the address is in use), BadRequest (it does not fit, or none is left).
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
            "dns_name": dns_name,
            "name": name,
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
        port = _port(answer)
        _require_bound(port, host)
        networks, subnets = self._cache.of_ports([port])
        vif = vif_of(port, networks, subnets, {})
        vif.tag = tag
        return vif

    def update_port(self, context: RequestContext | None, port_id: str, changes: Mapping[str, Any]) -> Json:
        """Changes attributes of a port; the port afterwards."""
        body = {"port": dict(changes)}
        return _port(self._own(context, "PUT", PORT, f"update port {port_id}", body=body, **_about(port_id)))

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
        """Gives a port to a server on a host, which becomes its only active binding. Raises PortNotFound, ServiceRefused."""
        changes: Json = {"binding:host_id": host, "device_id": device_id, "device_owner": device_owner}
        if profile is not None:
            changes["binding:profile"] = dict(profile)
        if dns_name is not None:
            changes["dns_name"] = dns_name
        port = self.update_port(context, port_id, changes)
        _require_bound(port, host)
        return port

    def unbind_port(self, context: RequestContext | None, port_id: str) -> None:
        """Takes a port that outlives its server away from it; all else of the port stays. One that is gone is fine."""
        with suppress(errors.PortNotFound):
            self.update_port(
                context,
                port_id,
                {"device_id": "", "device_owner": "", "binding:host_id": "", "binding:profile": {}},
            )

    def delete_port(self, context: RequestContext | None, port_id: str) -> None:
        """A port that is not there (any more) is fine."""
        with suppress(errors.PortNotFound):
            self._own(context, "DELETE", PORT, f"delete port {port_id}", **_about(port_id))

    def network_info(
        self,
        context: RequestContext | None,
        instance_uuid: str,
        ports: list[Json] | None = None,
        previous: Iterable[Vif] = (),
        *,
        refresh_floating_ips: bool = False,
    ) -> list[Vif]:
        """A server's ports as they are now, in the order of ``previous``, whose tags and ``preserve_on_delete`` are kept.

        One call for the ports; networks and subnets are remembered for some seconds. Floating IPs are those of
        ``previous`` unless a port was not there, or ``refresh_floating_ips``: then they are asked for.
        """
        known = {vif.id: vif for vif in previous}
        if ports is None:
            ports = self.ports_of_server(context, instance_uuid)
        if not ports:
            return []
        networks, subnets = self._cache.of_ports(ports)
        floating: dict[tuple[str, str], list[str]] = {}
        if refresh_floating_ips or any(port["id"] not in known for port in ports):
            floating = self._floating_ips(context, [port["id"] for port in ports])
        else:
            for vif in known.values():
                floating.update({(vif.id, ip.address): list(ip.floating_ips) for ip in vif.fixed_ips})
        vifs = []
        for port in order_ports(ports, list(known)):
            vif = vif_of(port, networks, subnets, floating)
            if port["id"] in known:
                vif.tag, vif.preserve_on_delete = known[port["id"]].tag, known[port["id"]].preserve_on_delete
            vifs.append(vif)
        return vifs

    def vif_of_port(
        self, context: RequestContext | None, port: Json, *, tag: str | None = None, preserve_on_delete: bool = True
    ) -> Vif:
        """A port that was there before its server, as the server's."""
        networks, subnets = self._cache.of_ports([port])
        vif = vif_of(port, networks, subnets, self._floating_ips(context, [port["id"]]))
        vif.tag, vif.preserve_on_delete = tag, preserve_on_delete
        return vif

    # Bindings

    def has_extension(self, alias: str) -> bool:
        """Whether the service has an API extension; asked once."""
        with self._lock:
            if self._extensions is None:
                answer = self._own(None, "GET", "/v2.0/extensions", "list its extensions")
                self._extensions = frozenset(each["alias"] for each in answer.json()["extensions"])
            return alias in self._extensions

    def list_bindings(self, context: RequestContext | None, port_id: str) -> list[PortBinding]:
        """Raises PortNotFound."""
        answer = self._own(context, "GET", BINDINGS, f"list the bindings of port {port_id}", **_about(port_id))
        return [_binding(each) for each in answer.json()["bindings"]]

    def create_binding(
        self,
        context: RequestContext | None,
        port_id: str,
        host: str,
        vnic_type: str = "normal",
        profile: Mapping[str, Any] | None = None,
    ) -> PortBinding:
        """Prepares a port on another host: an inactive binding. One that is there already is fine.

        Raises PortNotFound, ServiceRefused, ServiceFailed (also for a host that the service does not know).
        """
        answer = self._own(
            context,
            "POST",
            BINDINGS,
            f"bind port {port_id} to host {host}",
            body={"binding": {"host": host, "vnic_type": vnic_type, "profile": dict(profile or {})}},
            accept=(409,),
            repeatable=True,
            **_about(port_id),
        )
        if answer.status_code != 409:
            binding = _binding(answer.json()["binding"])
            if binding.vif_type == BINDING_FAILED:
                self.delete_binding(context, port_id, host)
                raise _binding_failed(port_id, host)
            return binding
        return self._existing(context, port_id, host, message_of(answer))

    def activate_binding(self, context: RequestContext | None, port_id: str, host: str) -> PortBinding:
        """Makes a host's binding the one in force; the others become inactive. One that is active already is fine.

        Raises NotFound if the host has none.
        """
        answer = self._own(
            context,
            "PUT",
            BINDING + "/activate",
            f"activate the binding of port {port_id} on host {host}",
            accept=(409,),
            host=host,
            **_about(port_id, missing=_binding_missing(port_id, host)),
        )
        if answer.status_code != 409:
            return _binding(answer.json()["binding"])
        binding = self._existing(context, port_id, host, message_of(answer))
        if binding.status != "ACTIVE":
            raise errors.ServiceRefused(
                f"The network service refused to activate the binding of port {port_id}.",
                details=f"host {host}: {message_of(answer)}",
            )
        return binding

    def delete_binding(self, context: RequestContext | None, port_id: str, host: str) -> None:
        """A binding that is not there (any more), or whose port is gone, is fine."""
        with suppress(errors.NotFound):
            self._own(
                context,
                "DELETE",
                BINDING,
                f"delete the binding of port {port_id} on host {host}",
                host=host,
                **_about(port_id),
            )

    def _existing(self, context: RequestContext | None, port_id: str, host: str, refusal: str) -> PortBinding:
        for binding in self.list_bindings(context, port_id):
            if binding.host == host:
                return binding
        raise errors.ServiceRefused(
            f"The network service refused to bind port {port_id}.", details=f"host {host}: {refusal}"
        )

    # Reading what changes rarely

    def _read_networks(self, ids: list[str]) -> list[Json]:
        answer = self._own(None, "GET", "/v2.0/networks", "list networks", query={"id": ids})
        networks: list[Json] = answer.json()["networks"]
        return networks

    def _read_subnets(self, ids: list[str]) -> list[Json]:
        answer = self._own(None, "GET", "/v2.0/subnets", "list subnets", query={"id": ids})
        subnets: list[Json] = answer.json()["subnets"]
        return subnets

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


def _about(port_id: str, missing: errors.NotFound | None = None) -> dict[str, Any]:
    return {
        "port_id": port_id,
        "missing": missing or errors.PortNotFound(f"Port id {port_id} could not be found."),
    }


def _port(answer: requests.Response) -> Json:
    port: Json = answer.json()["port"]
    return port


def _binding_missing(port_id: str, host: str) -> errors.NotFound:
    return errors.NotFound(f"Port {port_id} has no binding on the host that it shall move to.", details=f"host {host}")


def _binding_failed(port_id: str, host: str) -> errors.ServiceRefused:
    return errors.ServiceRefused(
        f"Binding failed for port {port_id}, please check neutron logs for more information.", details=f"host {host}"
    )


def _require_bound(port: Json, host: str | None) -> None:
    if host and port.get("binding:vif_type") == BINDING_FAILED:
        raise _binding_failed(port["id"], host)


def _binding(document: Mapping[str, Any]) -> PortBinding:
    return PortBinding(
        host=document["host"],
        status=document["status"],
        vnic_type=document.get("vnic_type") or "normal",
        vif_type=document.get("vif_type"),
        vif_details=dict(document.get("vif_details") or {}),
        profile=dict(document.get("profile") or {}),
    )


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
    return errors.ServiceRefused(
        f"The network service refused to make a port on network {network_id}: {message}", details=kind
    )
