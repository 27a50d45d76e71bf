"""Availability zones, and the services of all cells in them.

A host is in the zone that the metadata ``availability_zone`` of one of its aggregates names, else in the default one. Services
other than computes are in the internal zone.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway.api.services import ApiServices
from causeway.model.host import Aggregate, CellMapping, Service
from causeway.store.api import aggregates as aggregate_records
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts
from causeway.store.database import utcnow

COMPUTE = "nova-compute"


@dataclass
class ServiceInCell:
    cell: CellMapping
    service: Service
    zone: str
    up: bool


def zones_of_hosts(aggregates: list[Aggregate]) -> dict[str, str]:
    """host -> zone, for hosts of aggregates that name a zone."""
    return {
        host: aggregate.availability_zone
        for aggregate in aggregates
        if aggregate.availability_zone
        for host in aggregate.hosts
    }


def zone_of_host(services: ApiServices, host: str) -> str:
    default: str = services.conf.default_availability_zone
    return zones_of_hosts(aggregate_records.list_all(services.api)).get(host, default)


def is_compute(service: Service) -> bool:
    return service.binary == COMPUTE


def is_up(services: ApiServices, service: Service) -> bool:
    return hosts.is_up(service, utcnow(), services.conf.service_down_time)


def list_services(
    services: ApiServices, *, host: str | None = None, binary: str | None = None
) -> tuple[list[ServiceInCell], list[CellMapping]]:
    """The services of all cells, and the cells that did not answer. Super conductors are in cell0."""
    answers = services.cells.ask_all(
        lambda _cell, database: hosts.list_services(database, host=host, binary=binary), cell0=binary != COMPUTE
    )
    zones = zones_of_hosts(aggregate_records.list_all(services.api))
    default: str = services.conf.default_availability_zone
    internal: str = services.conf.internal_service_availability_zone
    found = [
        ServiceInCell(
            cell=services.cells.mapping(cell_uuid),
            service=service,
            zone=zones.get(service.host, default) if is_compute(service) else internal,
            up=is_up(services, service),
        )
        for cell_uuid, listed in answers.by_cell.items()
        for service in listed
    ]
    return found, answers.down


def mapped_one(services: ApiServices, found: list[ServiceInCell]) -> ServiceInCell:
    """Of the services of one host, that of the cell to which the host is mapped. Hosts of other cells may report its name."""
    if len(found) == 1:
        return found[0]
    mapping = cell_records.find_host(services.api, found[0].service.host)
    return next((one for one in found if mapping is not None and one.cell.uuid == mapping.cell_uuid), found[0])


def available(services: ApiServices) -> set[str]:
    """The zones that a user can ask for: those with an enabled compute service."""
    return {found.zone for found in list_services(services, binary=COMPUTE)[0] if not found.service.disabled}
