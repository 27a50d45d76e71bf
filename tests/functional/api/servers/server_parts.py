"""What tests of what belongs to a server share: a server with a port, metadata and a tag, and ids of things around it."""

from __future__ import annotations

from typing import Any

from causeway.model.instance import Instance
from causeway.model.network import FixedIp, Vif
from causeway.model.states import TaskState, VmState
from causeway.store.cell import instances

VOLUME = "33333333-2222-3333-4444-555555555555"
OTHER = "33333333-2222-3333-4444-666666666666"
DEFAULT, WEB = "11111111-aaaa-3333-4444-555555555555", "22222222-aaaa-3333-4444-555555555555"
GROUPS = {"default": DEFAULT, "web": WEB, "db": OTHER}
NAMES = {group: name for name, group in GROUPS.items()}
NETWORK = "22222222-2222-3333-4444-555555555555"
PORT = "55555555-2222-3333-4444-555555555555"


def server_with_parts(cloud: Any) -> Instance:
    """A running server on host1."""
    cloud.host("host1")
    vif = Vif(PORT, "fa:16:3e:00:00:01", NETWORK, "demo-net", [FixedIp("10.0.0.5", OTHER)], active=True, tag="nic")
    return cloud.server(host="host1", node="host1", network_info=[vif], metadata={"a": "1"}, tags=["x"])


def set_states(cloud: Any, server: Instance, vm_state: VmState, task_state: TaskState | None = None) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=vm_state, task_state=task_state)
