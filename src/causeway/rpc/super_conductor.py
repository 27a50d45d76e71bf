"""Calls of a cell's conductor to a super conductor, about records of the API database.

A cell's services connect only to their cell, so these calls use the cell's own message queue. The super conductors listen there.
A cast waits in the queue for a super conductor, if one has listened there before. The cell's conductor repeats casts that were
lost (`causeway.conductor.cells.cell`).
"""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import OperationToken
from causeway.model.volume_keys import VolumeKey
from causeway.rpc.declare import Client, IfSet, call, cast
from causeway.virt.live_guest import LiveProgress

TOPIC = "super_conductor"
HISTORY = {
    "1.0": "hosts that are new or back, transfers, missed and late orders; the node of `map_host` came after 0.1.0, which"
    " refuses it",
    "1.1": "keys of volumes and TPMs",
}
VERSION = next(reversed(HISTORY))

# Seconds: less than a compute waits for its cell's conductor.
PROGRESS_TIMEOUT = 5.0
# Seconds. If they are over, the waiting compute asks again.
MISSED_TIMEOUT = 20.0
# Seconds: less than a compute waits for its cell's conductor.
KEY_TIMEOUT = 280.0


class SuperConductorClient(Client):
    """Calls of a cell's conductor to the super conductors."""

    topic, history = TOPIC, HISTORY

    @cast(since="1.0")
    def map_host(self, context: RequestContext, *, host: str, node_uuid: IfSet[str | None] = None) -> None:
        """Records that a host is in the cell of this queue, and which node is its own.

        Super conductors are upgraded before the conductors of cells, so they know ``node_uuid``, which came after 0.1.0.
        """

    @cast(since="1.0")
    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        """Reports that a host is up again. Evacuated servers' guests and disks are then deleted from it."""

    @cast(since="1.0")
    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Reports a guest that runs although its server is stopped. The super conductor stops the guest."""

    @call(since="1.0", timeout=MISSED_TIMEOUT)
    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """Returns the orders that a host missed while it was dead. A starting host carries them out before anything else."""

    @call(since="1.0", timeout=MISSED_TIMEOUT)
    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Reports that the host has carried out these missed orders."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_progress(
        self, context: RequestContext, *, token: OperationToken, bytes_done: int, bytes_total: int
    ) -> None:
        """Passes on the progress of a disk transfer.

        Raises Cancelled, StateChanged or TakenOver if the transfer is no longer wanted.
        """

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def report_live_progress(self, context: RequestContext, *, token: OperationToken, progress: LiveProgress) -> str:
        """Passes on the progress of a live migration. Returns the server's uuid. Raises what `report_progress` raises."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def rate_of(self, context: RequestContext, *, token: OperationToken) -> float | None:
        """Returns how many bytes a second a transfer may use; None for no limit."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT)
    def check_order(self, context: RequestContext, *, token: OperationToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is too late: see `CellConductorClient.check_order`."""

    @call(since="1.1", timeout=KEY_TIMEOUT)
    def volume_key(self, context: RequestContext, *, host: str, volume_id: str, public_key: str) -> VolumeKey:
        """Returns the key of an encrypted volume: see `CellConductorClient.volume_key`."""

    @call(since="1.1", timeout=KEY_TIMEOUT)
    def tpm_key(self, context: RequestContext, *, host: str, key_id: str, public_key: str) -> VolumeKey:
        """Returns the key of the state of a server's TPM, sealed to ``public_key``, as `volume_key` returns that of a volume."""
