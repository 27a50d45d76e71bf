"""A host's checks whether a move to it could succeed. They claim, connect and write nothing."""

from __future__ import annotations

from collections.abc import Callable

from causeway import errors
from causeway.compute.guests import guest
from causeway.compute.handover import actions
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import DiskMeasure, PreCheck
from causeway.model.instance import Instance


class DryRunEndpoint:
    """RPC: check_move_to_host, measure_disks."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def check_move_to_host(
        self,
        context: RequestContext,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> list[PreCheck]:
        return [
            _pre_check("claim", lambda: self._check_room(instance)),
            _pre_check("volumes", lambda: self._check_volumes(context, block_devices)),
        ]

    def measure_disks(self, context: RequestContext, *, instance_uuid: str) -> DiskMeasure:  # noqa: ARG002
        return DiskMeasure(self._host.driver.disk_bytes(instance_uuid))

    def _check_room(self, instance: Instance) -> str:
        if instance.host != self._host.name:
            actions.require_nothing_of(self._host, instance.uuid)
        self._host.claims.check(instance)
        return ""

    def _check_volumes(self, context: RequestContext, block_devices: list[BlockDevice]) -> str:
        connected = [device for device in guest.volumes_of(block_devices) if device.connection_info is not None]
        actions.check_volumes(self._host, context, connected)
        return f"{len(connected)} connectable" if connected else "no connected volumes"


def _pre_check(name: str, check: Callable[[], str]) -> PreCheck:
    try:
        return PreCheck(name, True, check())
    except errors.CausewayError as refusal:
        return PreCheck(name, False, f"{refusal.message} {refusal.details}".strip())
