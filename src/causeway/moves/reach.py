"""Whether a server can go to another cell live, because hypervisors can hand its guest over. Else it goes near-live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.moves.move_run import Run
from causeway.rpc.compute import ComputeClient
from causeway.virt.live_guest import LiveSource

# The longest time, in seconds, that a guest stands still while hypervisors hand it over.
LIVE_PAUSE = 1.0
# Measured on common hardware: how many MiB of memory a second are saved, sent, fetched and loaded; and the least number of
# seconds that all of this takes.
_MIB_PER_SECOND, _ANYWAY = 80.0, 2.0

# Errors that mean that a host can't hand a guest over, or does not answer the question.
_CAN_NOT = (
    errors.ClaimRefused,
    errors.GuestFailed,
    errors.HostUnreachable,
    errors.RpcTimeout,
    errors.UnexpectedFailure,
)


def longest_pause(memory_mb: int) -> float:
    """Returns for how many seconds a guest that has used all of its memory stands still: an estimate."""
    return _ANYWAY + memory_mb / _MIB_PER_SECOND


def live_pause(memory_mb: int, source_can: Mapping[str, Any]) -> float:
    """Returns the longest time, in seconds, that a guest stands still in a live migration.

    ``source_can``: the capabilities of the hypervisor of its source.
    """
    return longest_pause(memory_mb) if source_can.get("stands_still_when_live") else LIVE_PAUSE


def why_near_live(
    conf: cfg.ConfigOpts,
    context: RequestContext,
    instance: Instance,
    devices: list[BlockDevice],
    source: ComputeClient,
    target: ComputeClient,
    host: str,
) -> errors.CausewayError | None:
    """Has both hosts try a connection. Returns why the guest can't go to ``host`` live; None if it can. Changes nothing."""
    guest = describe(conf, context, instance, devices, source)
    if isinstance(guest, errors.CausewayError):
        return guest
    return why_not_reached(context, guest, instance.host or "", source, target, host)


def describe(
    conf: cfg.ConfigOpts, context: RequestContext, instance: Instance, devices: list[BlockDevice], source: ComputeClient
) -> LiveSource | errors.CausewayError:
    """Returns its host's description of the guest, or the error why the guest can't go live to any host of another cell."""
    if conf.moves.direct == "never":
        return errors.HostUnreachable("[moves] direct is never.")
    try:
        return source.check_can_live_migrate_source(
            context, instance.host or "", instance=instance, block_devices=devices, block_migration=None
        )
    except _CAN_NOT as failure:
        return failure


def why_not_reached(
    context: RequestContext,
    guest: LiveSource,
    here: str,
    source: ComputeClient,
    target: ComputeClient,
    host: str,
) -> errors.CausewayError | None:
    """Returns why a guest can't go live from ``here`` to ``host``; None if it can."""
    try:
        address = target.live_address(context, host, source=guest)
        source.try_live_address(context, here, target=address)
    except _CAN_NOT as failure:
        return failure
    return None


def why_move_near_live(run: Run, host: str) -> errors.CausewayError | None:
    """The same as `why_near_live`, for a server that is moving to a host of the target's cell."""
    return why_near_live(
        run.services.conf,
        run.context,
        run.source_instance(),
        run.source_devices(),
        run.source_computes,
        run.target_computes,
        host,
    )
