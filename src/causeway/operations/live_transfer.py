"""The step of a live migration that transfers the guest, inside its cell."""

from __future__ import annotations

from causeway.operations.live_run import Run, devices_there, target_host, there
from causeway.parts.live_transfer import Side, Transfer, TransferGuest
from causeway.virt.live import LiveOptions, LiveTarget


class MigrateGuest(TransferGuest[Run]):
    """Both hosts are of the server's cell."""

    reads = frozenset({"block_migration", "devices", "place", "source_host", "target"})

    def _transfer(self, run: Run) -> Transfer:
        def side(host: str) -> Side:
            return Side(host, run.cell.uuid, run.database, run.computes)

        return Transfer(side(run.memory.source_host), side(target_host(run)), there(run), devices_there(run))

    def _made_ready(self, run: Run) -> tuple[LiveTarget | None, LiveOptions]:
        return run.memory.target, LiveOptions(block_migration=run.memory.block_migration)
