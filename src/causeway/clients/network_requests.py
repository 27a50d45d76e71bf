"""Checks users' requests for networks, ports and security groups. The errors are those of the Compute API."""

from __future__ import annotations

from collections.abc import Iterable

from causeway import errors
from causeway.clients.network_api import PORT, PORTS, Json, NetworkApi, about
from causeway.clients.rights import named
from causeway.context import RequestContext
from causeway.hardware import port_devices
from causeway.model.network import RequestedNetwork
from causeway.model.pci import InstancePCIRequest

UNLIMITED = -1
_ACCELERATED = "accelerator-"
_PHYSICAL_NETWORK = "provider:physical_network"


def physical_network_of(network: Json) -> str | None:
    """The physical network of a network; of several segments, the first one that has one. None if the network is tunnelled."""
    for segment in network.get("segments") or [network]:
        if segment.get(_PHYSICAL_NETWORK):
            return str(segment[_PHYSICAL_NETWORK])
    return None


class NetworkRequests(NetworkApi):
    """The part of the network client that reads what users name."""

    def list_networks(
        self, context: RequestContext, project_id: str, ids: Iterable[str] = (), *, external: bool = False
    ) -> list[Json]:
        """The networks that the project may use: its own, shared ones, and with ``external`` external ones of others."""
        query = {"id": sorted(set(ids))} if ids else {}
        answer = self._api.call(context, "GET", "/v2.0/networks", "list networks", called_as=named(), query=query)
        # With a user's token the service shows what is theirs, what is shared with them, and external networks.
        trusted = bool(context.auth_token)

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
        """Checks what a request asks for ``count`` servers. Returns it with the networks of given ports filled in.

        An empty request means the project's only network, or no network if it has none. ``external``: whether the caller may
        attach to external networks of others. Raises, as the Compute API does, BadRequest for what does not exist or is not
        usable, Conflict for several possible networks or a port in use, Forbidden for an external network, and OverQuota.
        """
        if not requested:
            available = [
                each for each in self.list_networks(context, project_id, external=False) if each.get("subnets")
            ]
            if len(available) > 1:
                raise errors.Conflict("Multiple possible networks found, use a Network ID to be more specific.")
            requested = [RequestedNetwork(network_id=network["id"]) for network in available]
            context.has_checked(*(network["id"] for network in available))
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
            port = self.port_of_user(context, requested.port_id)
        except errors.PortNotFound as error:
            raise errors.BadRequest(error.message, details=error.details) from error
        if port.get("device_id"):
            raise errors.Conflict(f"Port {port['id']} is still in use.")
        if port.get("project_id", port.get("tenant_id")) != project_id and not context.is_admin:
            raise errors.BadRequest(f"Port {port['id']} is not usable for this instance: it is another project's.")
        context.has_checked(port["id"])
        if str(port.get("binding:vnic_type")).startswith(_ACCELERATED):
            raise errors.BadRequest(
                f"Port {port['id']} is of vnic_type {port['binding:vnic_type']}: accelerators are not supported."
            )
        if not port.get("fixed_ips") and port.get("ip_allocation") != "deferred":
            raise errors.BadRequest(f"Port {port['id']} requires a FixedIP in order to be used.")
        return RequestedNetwork(
            port["network_id"],
            port["id"],
            requested.fixed_ip,
            requested.tag,
            resource_request=port.get("resource_request"),
            pci_request=self._device_request(context, port),
        )

    def port_of_user(self, context: RequestContext, port_id: str) -> Json:
        """A port that the user sees, with what the service shows only to us. Raises PortNotFound."""
        what, only = f"show port {port_id}", {"fields": "id"}
        self._api.call(context, "GET", PORT, what, called_as=named(port_id), query=only, **about(port_id))
        return self.show_port(context, port_id)

    def _device_request(self, context: RequestContext, port: Json) -> InstancePCIRequest | None:
        """The device that a port needs; None if it needs none."""
        if not port_devices.needs_device(port.get("binding:vnic_type")):
            return None
        # Only administrators see the physical network.
        query = {"id": port["network_id"]}
        found = self._own(context, "GET", "/v2.0/networks", "list networks", query=query).json()["networks"]
        return port_devices.request_of(port, physical_network_of(found[0]) if found else None)

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
            context.has_checked(network_id)
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
        """The ids of security groups given by name or id. Raises BadRequest for an unknown, Conflict for an ambiguous one."""
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
        self, context: RequestContext, *, project_id: str | None = None, ids: Iterable[str] = ()
    ) -> list[Json]:
        """Security groups (id, name, project_id, ...) of a project, or those with given ids, that the user may see.

        If the user's token has expired during accepted work, those of the user's own project are read with our own credentials.
        """
        query: list[tuple[str, str]] = [("id", each) for each in sorted(set(ids))]
        if project_id is not None:
            query.append(("project_id", project_id))
        what, called_as = "list security groups", named() if project_id is None else named(project_id)
        answer = self._api.call(context, "GET", "/v2.0/security-groups", what, called_as=called_as, query=query)
        groups: list[Json] = answer.json()["security_groups"]
        return groups
