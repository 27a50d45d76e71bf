"""Port bindings: prepare a port on another host, and move it there (extension ``binding-extended``)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from causeway import errors
from causeway.clients.answers import message_of
from causeway.clients.network_api import (
    BINDING_FAILED,
    PORT,
    UNBOUND,
    NetworkApi,
    about,
    binding_failed,
    require_pluggable,
)
from causeway.context import RequestContext
from causeway.hardware.port_plugs import is_of_agent

BINDINGS, BINDING = PORT + "/bindings", PORT + "/bindings/{host}"


@dataclass
class PortBinding:
    """A port's binding to one host. One of a port's bindings has ``status`` ACTIVE."""

    host: str
    status: str
    vnic_type: str = "normal"
    vif_type: str | None = None
    vif_details: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)

    @property
    def must_be_alone(self) -> bool:
        """Whether the port stays down for as long as other hosts have bindings, and until it is updated.

        Neutron's Open vSwitch agents take an inactive binding for a sign of a running live migration. Also, Neutron unbinds a
        binding that it makes inactive, so such a binding must be made anew before it is activated again.
        """
        return self.vif_type == UNBOUND or is_of_agent(self.vif_details)


class PortBindings(NetworkApi):
    """The part of the network client that handles bindings."""

    def list_bindings(self, context: RequestContext | None, port_id: str) -> list[PortBinding]:
        """Raises PortNotFound."""
        answer = self._own(context, "GET", BINDINGS, f"list the bindings of port {port_id}", **about(port_id))
        return [_binding(each) for each in answer.json()["bindings"]]

    def create_binding(
        self,
        context: RequestContext | None,
        port_id: str,
        host: str,
        vnic_type: str = "normal",
        profile: Mapping[str, Any] | None = None,
    ) -> PortBinding:
        """Prepares a port on another host with an inactive binding, unless the host has a binding already.

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
            **about(port_id),
        )
        if answer.status_code != 409:
            binding = _binding(answer.json()["binding"])
            if binding.vif_type == BINDING_FAILED:
                self.delete_binding(context, port_id, host)
                raise binding_failed(port_id, host)
        else:
            binding = self._existing(context, port_id, host, message_of(answer))
        try:
            require_pluggable(port_id, host, binding.vif_type, binding.vif_details)
        except errors.ClaimRefused:
            if binding.status != "ACTIVE":
                self.delete_binding(context, port_id, host)
            raise
        return binding

    def activate_binding(self, context: RequestContext | None, port_id: str, host: str) -> PortBinding:
        """Activates a host's binding, if it is not active already. The others become inactive.

        Raises NotFound if the host has none.
        """
        answer = self._own(
            context,
            "PUT",
            BINDING + "/activate",
            f"activate the binding of port {port_id} on host {host}",
            accept=(409,),
            host=host,
            **about(port_id, missing=_binding_missing(port_id, host)),
        )
        if answer.status_code != 409:
            # Neutron answers with the bare binding, though its reference says otherwise.
            found = answer.json()
            return _binding(found.get("binding", found))
        binding = self._existing(context, port_id, host, message_of(answer))
        if binding.status != "ACTIVE":
            raise errors.ServiceRefused(
                f"The network service refused to activate the binding of port {port_id}.",
                details=f"host {host}: {message_of(answer)}",
            )
        return binding

    def delete_other_bindings(self, context: RequestContext | None, port_id: str, host: str) -> None:
        """Deletes the bindings of all other hosts, for a port whose binding `must_be_alone`."""
        for binding in self.list_bindings(context, port_id):
            if binding.host != host:
                self.delete_binding(context, port_id, binding.host)

    def delete_binding(self, context: RequestContext | None, port_id: str, host: str) -> None:
        """Deletes a binding, if it and its port exist."""
        with suppress(errors.NotFound):
            self._own(
                context,
                "DELETE",
                BINDING,
                f"delete the binding of port {port_id} on host {host}",
                host=host,
                **about(port_id),
            )

    def _existing(self, context: RequestContext | None, port_id: str, host: str, refusal: str) -> PortBinding:
        for binding in self.list_bindings(context, port_id):
            if binding.host == host:
                return binding
        raise errors.ServiceRefused(
            f"The network service refused to bind port {port_id}.", details=f"host {host}: {refusal}"
        )


def _binding_missing(port_id: str, host: str) -> errors.NotFound:
    return errors.NotFound(f"Port {port_id} has no binding on its target host.", details=f"host {host}")


def _binding(document: Mapping[str, Any]) -> PortBinding:
    return PortBinding(
        host=document["host"],
        status=document["status"],
        vnic_type=document.get("vnic_type") or "normal",
        vif_type=document.get("vif_type"),
        vif_details=dict(document.get("vif_details") or {}),
        profile=dict(document.get("profile") or {}),
    )
