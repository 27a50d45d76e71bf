"""Calls of the computes of a cell to their cell's conductor, over the cell's message queue."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import HostReport, OperationToken, RecordedClaim
from causeway.model.states import TaskState
from causeway.model.volume_keys import VolumeKey
from causeway.rpc.declare import HOLDERS_OF_TOKEN, Client, call
from causeway.virt.live_guest import LiveProgress

TOPIC = "cell_conductor"
HISTORY = {
    "1.0": "reports of hosts and of transfers, orders that hosts missed, whether an order is late, recorded claims; `check_start`"
    " came after 0.1.0, which refuses it",
    "1.1": "keys of volumes and TPMs",
}
VERSION = next(reversed(HISTORY))

# Seconds. The limit is short because a transfer waits for the answer to its report.
PROGRESS_TIMEOUT = 10.0
# Seconds. The volume service and the key manager are asked meanwhile.
KEY_TIMEOUT = 300.0


class CellConductorClient(Client):
    """The conductor of the cell, for its computes."""

    topic, history = TOPIC, HISTORY

    # The report names its host twice: for the service's record, and for the compute node's.
    @call(since="1.0", reporter=("report.host", "report.node.host"))
    def report_host(self, context: RequestContext, *, report: HostReport, timeout: float | None = None) -> bool:
        """Reports that the host is alive, and its resources and guests. Returns whether the host is enabled.

        ``timeout``: seconds that the host waits; None: the option ``rpc_response_timeout``.
        """

    @call(since="1.0", reporter=("host",))
    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """Returns the orders that the host missed while it was dead. A starting host carries them out before anything else."""

    @call(since="1.0", reporter=("host",))
    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Reports that the host has carried out these missed orders."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT, reporter=HOLDERS_OF_TOKEN)
    def report_progress(
        self, context: RequestContext, *, token: OperationToken, bytes_done: int, bytes_total: int
    ) -> float | None:
        """Reports the progress of a disk transfer. Returns the bytes a second that it may use from now on; None for no limit.

        Raises Cancelled, StateChanged or TakenOver if the transfer is no longer wanted.
        """

    @call(since="1.0", timeout=PROGRESS_TIMEOUT, reporter=HOLDERS_OF_TOKEN)
    def report_live_progress(
        self, context: RequestContext, *, token: OperationToken, progress: LiveProgress
    ) -> float | None:
        """Reports the progress of a live migration. Returns and raises what `report_progress` does."""

    @call(since="1.0", timeout=PROGRESS_TIMEOUT, reporter=HOLDERS_OF_TOKEN)
    def check_order(self, context: RequestContext, *, token: OperationToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is too late: another conductor owns the move, or the move has ended.

        ``forward``: the order is also too late if the move is being rolled back.
        """

    @call(since="1.0", timeout=PROGRESS_TIMEOUT, reporter=("host",))
    def check_start(
        self, context: RequestContext, *, host: str, instance_uuid: str, task_state: TaskState | None
    ) -> None:
        """Raises an error if a host must not start a server's guest, because its order has waited in the queue for too long.

        ``task_state``: the server's task when the order was sent. Raises HostFenced if the host was declared dead meanwhile,
        StateChanged if the server is on another host or has another task, ServerNotFound if it was deleted.
        """

    @call(since="1.0", reporter=("host",))
    def recorded_claims(
        self, context: RequestContext, *, host: str, instance_uuids: list[str] | None
    ) -> list[RecordedClaim]:
        """Returns the resources that the host should hold for these servers, according to their records. None: for all."""

    @call(since="1.1", timeout=KEY_TIMEOUT, reporter=("host",))
    def volume_key(self, context: RequestContext, *, host: str, volume_id: str, public_key: str) -> VolumeKey:
        """Returns the key of an encrypted volume, sealed to ``public_key`` (`causeway.rpc.sealed_keys`).

        The context has the grant of the order that the host carries out (`causeway.rpc.key_grants`). Raises Forbidden without
        one for this host and this volume, or if the key manager lets neither the order's user nor us have the key.
        """

    @call(since="1.1", timeout=KEY_TIMEOUT, reporter=("host",))
    def tpm_key(self, context: RequestContext, *, host: str, key_id: str, public_key: str) -> VolumeKey:
        """Returns the key of the state of a server's TPM, sealed to ``public_key``, as `volume_key` returns that of a volume."""
