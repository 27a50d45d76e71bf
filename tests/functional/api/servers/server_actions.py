"""What tests of actions share: asking for one, and what it did to the record."""

from __future__ import annotations

from typing import Any

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.store.api import build_requests, mappings
from causeway.store.cell import actions, instances
from causeway.store.database import utcnow

MISSING = "b0000000-0000-0000-0000-000000000000"


def act(caller: Any, server: Instance | str, name: str, value: Any = None, **options: Any) -> Any:
    uuid = server if isinstance(server, str) else server.uuid
    return caller.post(f"/servers/{uuid}/action", {name: value}, **options)


def reread(cloud: Any, server: Instance, cell: str = "cell1") -> Instance:
    return instances.get(cloud.cell(cell), server.uuid)


def recorded(cloud: Any, server: Instance) -> list[str]:
    return [action.action for action in actions.of_instance(cloud.cell("cell1"), server.uuid)]


def set_states(cloud: Any, server: Instance, vm_state: VmState, task_state: TaskState | None = None) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=vm_state, task_state=task_state)


def make_build_request(cloud: Any) -> str:
    uuid = "c0000000-0000-0000-0000-000000000001"
    instance = Instance(uuid, "project", "user", "waiting", Flavor("1", "f", 1, 1, 1), created_at=utcnow())
    with cloud.services.api.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping(uuid, "project", "user", utcnow()))
        mappings.save_spec_in(connection, uuid, {})
        request = build_requests.BuildRequest(uuid, "project", utcnow(), instance)
        build_requests.insert_in(connection, request)
    return uuid
