"""Calls of a conductor to the computes of one cell.

Every call is about one server on one host, may be repeated, and returns what the conductor has to record. A call that belongs
to a move or another operation has the operation's token.

| file | calls |
|---|---|
| `guests`, `guest_states` | start, stop, pause and inspect a guest |
| `orders`, `devices` | orders that are carried out once for an operation: builds, rebuilds, images of disks, volumes, ports |
| `rescues`, `volumes` | rescues; volumes that guests have open |
| `inside` | users' requests to the guest itself |
| `dry_runs`, `resizes` | resizes and cold migrations, inside a cell and between cells |
| `warm`, `live`, `near_live` | moves of running guests |
| `copies`, `audit` | what is on a host, before another copy is destroyed and when something is orphaned |

A host may be compromised: `answers` says what is believed of its answers.

The versions are in `causeway.model.versions`, because lower layers need them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from causeway.model import versions
from causeway.rpc import super_conductor
from causeway.rpc.compute import answers
from causeway.rpc.compute.audit import AuditCalls
from causeway.rpc.compute.copies import CopyCalls
from causeway.rpc.compute.devices import DeviceCalls
from causeway.rpc.compute.dry_runs import DryRunCalls
from causeway.rpc.compute.inside import InsideCalls
from causeway.rpc.compute.live_calls import LiveCalls, NearLiveCalls, PortDeviceCalls
from causeway.rpc.compute.orders import OrderCalls
from causeway.rpc.compute.rescues import RescueCalls
from causeway.rpc.compute.resizes import ResizeCalls
from causeway.rpc.compute.volumes import VolumeCalls
from causeway.rpc.compute.warm import WarmCalls
from causeway.rpc.declare import Call
from causeway.rpc.transport import Transport

TOPIC = "compute"
HISTORY = {version.rpc: version.brought for version in versions.COMPUTE}


class ComputeClient(
    OrderCalls,
    DeviceCalls,
    InsideCalls,
    RescueCalls,
    VolumeCalls,
    DryRunCalls,
    ResizeCalls,
    WarmCalls,
    LiveCalls,
    NearLiveCalls,
    PortDeviceCalls,
    CopyCalls,
    AuditCalls,
):
    """The computes of one cell, over that cell's message queue."""

    topic, history, to_hosts = TOPIC, HISTORY, True

    def __init__(self, transport: Transport, version_cap: str | None = None) -> None:
        super().__init__(transport, version_cap, listens_at=super_conductor.TOPIC)

    def _for_host(self, call: Call, host: str | None, given: dict[str, Any]) -> dict[str, Any]:
        return given if host is None else answers.for_host(host, call.name, given)

    def _believed(self, call: Call, host: str | None, given: Mapping[str, Any], answer: Any) -> Any:
        return answers.check(host or "", call.name, given, call.result, answer)
