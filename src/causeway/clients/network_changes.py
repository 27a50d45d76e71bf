"""Changes of ports that depend on their present state, without losing what others change meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import requests

from causeway import errors
from causeway.clients.answers import error_of, kind_of
from causeway.clients.network_api import PORT, PORTS, Json, NetworkApi, about, port_of
from causeway.clients.port_owners import PortOwner
from causeway.clients.rights import named
from causeway.context import RequestContext

REVISIONS = "revision-if-match"
# How often a port is read again because it was changed meanwhile.
ATTEMPTS = 5
NO_ADDRESS_LEFT = frozenset({"IpAddressGenerationFailure", "ExternalIpAddressExhausted"})


class _ChangedMeanwhile(Exception):
    """The port was changed after it was read."""


class _NoneLeft(Exception):
    """The subnet has no address to spare."""


class PortChanges(NetworkApi):
    """The part of the network client that changes lists of ports: their addresses and security groups."""

    def change_port(self, context: RequestContext, port: Json, wanted: Callable[[Json], dict[str, Any] | None]) -> Json:
        """Changes a port, and returns it as it is afterwards.

        ``port``: as it was read. ``wanted``: returns the changes for the port as it is; None for no changes. Raises
        PortNotFound, and Conflict if others keep changing it.
        """
        seen = port
        for _ in range(ATTEMPTS):
            changes = wanted(seen)
            if changes is None:
                return seen
            with suppress(_ChangedMeanwhile):
                return port_of(self._change(context, seen, changes, repeatable=True))
            seen = self.show_port(context, port["id"])
        raise errors.Conflict(f"Port {port['id']} is being changed by others. Try again.")

    def add_fixed_ip(self, context: RequestContext, owner: PortOwner, network_id: str) -> None:
        """Adds an address to a port that the server has on the network, from the first subnet with a free one.

        Raises BadRequest if the server has no port there, or no subnet has a free address; Conflict if others keep changing the
        port.
        """

        def add() -> None:
            ports = self._ports_of_user(context, owner, {"network_id": network_id})
            if not ports:
                raise errors.BadRequest(f"Server {owner.uuid} has no port on network {network_id}.")
            port = ports[0]
            for subnet_id in self._subnets(context, network_id):
                with suppress(_NoneLeft):
                    self._change(context, port, {"fixed_ips": [*port["fixed_ips"], {"subnet_id": subnet_id}]})
                    return
            raise errors.BadRequest(f"No fixed IP addresses available for network: {network_id}")

        _until_unchanged(add, owner.uuid)

    def remove_fixed_ip(self, context: RequestContext, owner: PortOwner, address: str) -> None:
        """Removes an address from the server's port that has it.

        Raises BadRequest if no port has it, Conflict if others keep changing the port.
        """

        def remove() -> None:
            ports = self._ports_of_user(context, owner, {"fixed_ips": f"ip_address={address}"})
            if not ports:
                raise errors.BadRequest(f"Server {owner.uuid} does not have the fixed IP {address}.")
            left = [each for each in ports[0]["fixed_ips"] if each["ip_address"] != address]
            self._change(context, ports[0], {"fixed_ips": left})

        _until_unchanged(remove, owner.uuid)

    def _change(
        self, context: RequestContext, port: Json, changes: dict[str, Any], *, repeatable: bool = False
    ) -> requests.Response:
        """Changes a port, if it is still as it was read, where the service can check that. Raises `_ChangedMeanwhile`,
        `_NoneLeft`.

        ``repeatable``: whether a second identical call has the same effect. Not so if the service chooses an address.
        """
        headers = {"If-Match": f"revision_number={port['revision_number']}"} if self.has_extension(REVISIONS) else {}
        what = f"change port {port['id']}"
        answer = self._own(
            context, "PUT", PORT, what,
            body={"port": changes}, headers=headers, accept=(400, 409, 412),
            repeatable=repeatable, **about(port["id"]),
        )  # fmt: skip
        if answer.status_code == 412:
            raise _ChangedMeanwhile
        if kind_of(answer) in NO_ADDRESS_LEFT:
            raise _NoneLeft
        if answer.status_code >= 400:
            raise error_of("network", answer, what, None, is_users=True)
        return answer

    def _ports_of_user(self, context: RequestContext, owner: PortOwner, query: dict[str, str]) -> list[Json]:
        """The server's ports that match and that the user sees. Only we may change their addresses."""
        query = {"device_id": owner.uuid, **query}
        answer = self._api.call(context, "GET", PORTS, "list ports", called_as=named(), query=query)
        return [port for port in answer.json()["ports"] if owner.has(port)]

    def _subnets(self, context: RequestContext, network_id: str) -> list[str]:
        query = [("network_id", network_id), ("fields", "id")]
        answer = self._own(context, "GET", "/v2.0/subnets", "list subnets", query=query)
        return [each["id"] for each in answer.json()["subnets"]]


def _until_unchanged(change: Callable[[], None], instance_uuid: str) -> None:
    for _ in range(ATTEMPTS):
        with suppress(_ChangedMeanwhile):
            return change()
    raise errors.Conflict(f"The ports of server {instance_uuid} are being changed by others. Try again.")
