"""A conductor that stands still at a point while another one takes its operation over, and then continues."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from causeway.conductor.service import ConductorService
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud, until
from tests.lease_checks import end_lease

# A module's ``CLOUD``: leases end soon.
SHORT_LEASES: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 5, "shelved_offload_time": 0},
        "conductor": {"recovery_interval": 3},
        "moves": {"lease": 2.0},
        "fault_injection": {"enabled": True},
    }
}


class Hold:
    """Holds up whoever reaches a point first."""

    def __init__(self, at_point: Callable[..., None], point: str) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        at_point(point, self._wait)

    def _wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(30)


def take_over_at(cloud: Cloud, other: ConductorService, hold: Hold, server_id: str) -> None:
    """Takes over the server's latest operation when its conductor is held up."""
    assert hold.reached.wait(10)
    take_over(cloud, other, journal.of_server(cloud.parts.api_database, server_id)[-1].id)


def take_over(cloud: Cloud, other: ConductorService, operation_id: str) -> None:
    """Whichever of the two conductors does not own the operation does from now on."""
    api, own = cloud.parts.api_database, cloud.parts.conductor
    owner = journal.get(api, operation_id).owner
    taker = other if other._services.life.owner != owner else own

    def taken_over() -> bool:
        end_lease(api, journal.get(api, operation_id))
        taker._keeper.take_over()
        return bool(journal.get(api, operation_id).owner != owner)

    until(taken_over, bool, "the takeover")


def proceed(cloud: Cloud, other: ConductorService, hold: Hold) -> None:
    """Whoever was held up continues, and comes to its end."""
    own = cloud.parts.conductor
    wake(cloud, hold)
    until(lambda: own._keeper.is_busy or other._keeper.is_busy, lambda busy: not busy, "the slow one to end")


def wake(cloud: Cloud, hold: Hold) -> None:
    """Whoever was held up continues."""
    # Who has lost a lease in earnest is not certain of it any more.
    cloud.parts.conductor._services.stopping.wait(2)
    hold.opened.set()
