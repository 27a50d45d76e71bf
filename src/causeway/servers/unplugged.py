"""A port that did not come up where its guest is stops nothing. Who has made the guest there says so, in step and history.

Later the audit finds it (`causeway.audit.checks.wiring`).
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.running.server_run import ServerRun

EVENT = "compute_plug_ports"


def warn_of_unplugged(run: ServerRun[Any], host: str, guest: GuestOutcome) -> None:
    """``guest``: after a wait for its ports on ``host``."""
    down = sorted(vif.id for vif in guest.network_info if not vif.active)
    if not down or guest.power_state is PowerState.SHUTDOWN:
        return
    run.warn(
        EVENT,
        host,
        errors.PortsDown(
            f"The guest of server {run.uuid} is on {host}, and the network service has not plugged port {', '.join(down)} there.",
            details="Look at the network service's agent or controller on that host.",
        ),
    )
