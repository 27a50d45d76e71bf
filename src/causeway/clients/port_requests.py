"""The resources that ports ask for, and how the network service learns their providers.

A port with a QoS policy shows ``resource_request``: in the older form one group (``required``, ``resources``), with the
extension ``port-resource-request-groups`` several (``request_groups``, ``same_subtree``). Each becomes a granular group of the
server's request for candidates. The provider that was chosen for it goes into the binding profile as ``allocation``: its uuid in
the older form, group id -> uuid in the other. Source: Network API reference, "Port resource request".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from causeway.clients.placement.types import RequestGroup, Resources

ALLOCATION = "allocation"
BANDWIDTH = "NET_BW_"

Json = dict[str, Any]


@dataclass
class PortRequest:
    """The request of one port. ``is_single``: it has the older form."""

    port_id: str
    groups: list[RequestGroup]
    same_subtree: set[str] = field(default_factory=set)
    is_single: bool = False

    def allocation(self, mappings: Mapping[str, list[str]]) -> str | dict[str, str]:
        """The ``allocation`` for the network service, from Placement's mappings (group -> its providers)."""
        if self.is_single:
            return mappings[self.groups[0].suffix][0]
        return {group.suffix: mappings[group.suffix][0] for group in self.groups}

    def provider_of_bandwidth(self, mappings: Mapping[str, list[str]]) -> str | None:
        """The provider that was chosen for the port's bandwidth; None if it asks for none."""
        for group in self.groups:
            if any(name.startswith(BANDWIDTH) for name in group.resources) and mappings.get(group.suffix):
                return mappings[group.suffix][0]
        return None

    def held(self, allocation: str | Mapping[str, str]) -> dict[str, Resources]:
        """Provider -> the resources that the port holds there; the reverse of `allocation`."""
        total: dict[str, Resources] = {}
        for group in self.groups:
            provider = allocation if isinstance(allocation, str) else allocation.get(group.suffix)
            if provider is None:
                continue
            amounts = total.setdefault(provider, {})
            for name, amount in group.resources.items():
                amounts[name] = amounts.get(name, 0) + amount
        return total


def request_of(port_id: str, asked: Mapping[str, Any] | None) -> PortRequest | None:
    """Reads a port's ``resource_request``; None if it asks for nothing."""
    if not asked:
        return None
    if "request_groups" not in asked:
        group = _group(port_id, asked)
        return PortRequest(port_id, [group], is_single=True) if group.resources else None
    groups = [_group(each["id"], each) for each in asked["request_groups"] or []]
    groups = [group for group in groups if group.resources]
    if not groups:
        return None
    return PortRequest(port_id, groups, set(asked.get("same_subtree") or ()))


def requests_of(ports: list[Json]) -> list[PortRequest]:
    """The requests of ports, as the network service shows these to us."""
    found = (request_of(port["id"], port.get("resource_request")) for port in ports)
    return [request for request in found if request is not None]


def all_groups(requests: list[PortRequest]) -> list[RequestGroup]:
    return [group for request in requests for group in request.groups]


def subtrees(requests: list[PortRequest]) -> list[set[str]]:
    """The sets of groups that must be served below one provider. (A single group always is.)"""
    return [request.same_subtree for request in requests if len(request.same_subtree) > 1]


def with_allocation(profile: Mapping[str, Any], request: PortRequest | None, mappings: Mapping[str, list[str]]) -> Json:
    """A binding profile with the providers of another host, or without providers if the port asks for nothing."""
    bare = {name: value for name, value in profile.items() if name != ALLOCATION}
    return bare if request is None else {**bare, ALLOCATION: request.allocation(mappings)}


def _group(suffix: str, asked: Mapping[str, Any]) -> RequestGroup:
    return RequestGroup(
        suffix=suffix,
        resources={name: amount for name, amount in (asked.get("resources") or {}).items() if amount},
        required=set(asked.get("required") or ()),
    )
