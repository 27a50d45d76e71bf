"""Decides whether a compute host is up, down or fenced. Nothing else decides this.

With ``forced_down`` (``openstack compute service set --down HOST nova-compute``) an operator declares a host *fenced*: it runs
nothing and will not come back by surprise. Otherwise a host that does not report is only *down*: its guests may still run, and
operations that need the host wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from causeway import errors
from causeway.model.host import Service
from causeway.running.services import ConductorServices
from causeway.store.cell import hosts
from causeway.store.database import Database, utcnow

BINARY = "nova-compute"


class Liveness(StrEnum):
    UP = "up"
    DOWN = "down"
    FENCED = "fenced"


@dataclass(frozen=True)
class HostLife:
    """``version``: of its compute service, 0 if there is none."""

    host: str
    liveness: Liveness
    version: int = 0

    @property
    def is_up(self) -> bool:
        return self.liveness is Liveness.UP

    @property
    def is_fenced(self) -> bool:
        return self.liveness is Liveness.FENCED

    @property
    def is_down(self) -> bool:
        return self.liveness is Liveness.DOWN

    def refuse_fenced(self) -> None:
        """Raises HostFenced if an operator declared the host dead: others may run its guests, also if it is back already."""
        if self.is_fenced:
            raise errors.HostFenced("The host of the server was declared dead.", details=self.explained())

    def explained(self) -> str:
        """The host's state for administrators, and what they can do."""
        if self.is_down:
            return (
                f"host {self.host} is down; if it will not come back, say so:"
                f" openstack compute service set --down {self.host} {BINARY}"
            )
        return f"host {self.host} is {'forced down' if self.is_fenced else 'up'}"


def of_host(services: ConductorServices, database: Database, host: str) -> HostLife:
    """``database``: of the host's cell."""
    return in_cell(database, host, services.conf.service_down_time)


def in_cell(database: Database, host: str, service_down_time: float) -> HostLife:
    """`of_host`, for callers that know only the host's cell. ``service_down_time``: the option, in seconds."""
    found = next(iter(hosts.list_services(database, host=host, binary=BINARY)), None)
    return _by_record(host, found, service_down_time)


def of_service(services: ConductorServices, host: str, found: Service | None) -> HostLife:
    """The life of a host by the record of its compute service. A host without one is down."""
    return _by_record(host, found, services.conf.service_down_time)


def _by_record(host: str, found: Service | None, service_down_time: float) -> HostLife:
    if found is None:
        return HostLife(host, Liveness.DOWN)
    if found.forced_down:
        return HostLife(host, Liveness.FENCED, found.version)
    alive = hosts.is_up(found, utcnow(), service_down_time)
    return HostLife(host, Liveness.UP if alive else Liveness.DOWN, found.version)
