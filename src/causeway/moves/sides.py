"""The two hosts of a move, each with its cell, and orders to the one that may be down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from causeway import errors
from causeway.hosts import cleanups, liveness
from causeway.hosts.liveness import HostLife
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.outcomes import OperationToken
from causeway.moves.move_run import Run
from causeway.rpc.compute import ComputeClient
from causeway.store.database import Database


@dataclass(frozen=True)
class Side:
    """One of the two hosts, and the means to call it. Inside a cell both have the same cell."""

    host: str
    cell_uuid: str
    database: Database
    computes: ComputeClient


def source_of(run: Run) -> Side:
    return Side(run.memory.source_host, run.memory.source_cell, run.source_database, run.source_computes)


def target_of(run: Run) -> Side:
    return Side(run.memory.target_host, run.memory.target_cell, run.target_database, run.target_computes)


def life_of(run: Run, side: Side) -> HostLife:
    return liveness.of_host(run.services, side.database, side.host)


def send_or_note(
    run: Run,
    side: Side,
    what: Missed,
    instance: Instance,
    devices: list[BlockDevice],
    token: OperationToken,
    send: Callable[[], None],
) -> None:
    """Sends a host the order to delete what it has of the guest. Notes the order for a host that is down, to be sent later."""
    if life_of(run, side).is_up:
        try:
            send()
            return
        except errors.RpcTimeout:
            if life_of(run, side).is_up:
                raise
    cleanups.note(run.services, side.host, side.cell_uuid, what, instance, devices, token)
