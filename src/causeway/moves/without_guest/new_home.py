"""The place where a server that left its host comes up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.pci import InstancePCIRequest


@dataclass
class NewHome:
    """``ports``: as they will be bound there; ``pci_requests``: the devices to claim there."""

    host: str
    node: str | None
    availability_zone: str | None
    ports: list[Vif] = field(default_factory=list)
    pci_requests: list[InstancePCIRequest] = field(default_factory=list)


def new_home_of(chosen: Instance) -> NewHome:
    """The place of ``chosen``, which is the server as it will be (`causeway.moves.placing`)."""
    return NewHome(chosen.host or "", chosen.node, chosen.availability_zone, chosen.network_info, chosen.pci_requests)


def at_new_home(instance: Instance, place: NewHome | None) -> Instance:
    """The server as it will be at its place; unchanged if no place was chosen."""
    if place is None:
        return instance
    return dataclasses.replace(
        instance,
        host=place.host,
        node=place.node,
        availability_zone=place.availability_zone,
        network_info=place.ports,
        pci_requests=place.pci_requests,
    )
