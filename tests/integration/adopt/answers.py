"""What the two compute APIs answer, each through an openstacksdk connection."""

from __future__ import annotations

from typing import Any

from tests.functional.processes.own_process import until
from tests.integration.adopt import nova

PATIENCE = 600.0
# What an answer has of whose it is: its own URLs, and the state of a compute that reports to one of the two only.
OWN = {"links", "host_status"}
# Nova's name of a guest has the number of its row, which is another one in another cell; the guest keeps the name that it has.
OF_THE_ROW = {"OS-EXT-SRV-ATTR:instance_name", "updated"}
LAUNCHED = "OS-SRV-USG:launched_at"


def shown(connection: Any, uuid: str) -> dict[str, Any]:
    answer = connection.compute.get(f"/servers/{uuid}", microversion=nova.MICROVERSION)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = without(answer.json()["server"], OWN)
    return found


def known(connection: Any, uuid: str) -> dict[str, Any]:
    """What both show of a server that was handed back. Nova's databases keep whole seconds."""
    found = {name: value for name, value in shown(connection, uuid).items() if name not in OF_THE_ROW}
    return {**found, LAUNCHED: found[LAUNCHED].partition(".")[0]}


def without(value: Any, keys: set[str]) -> Any:
    """The value, without these keys anywhere in it."""
    if isinstance(value, dict):
        return {key: without(each, keys) for key, each in value.items() if key not in keys}
    return [without(each, keys) for each in value] if isinstance(value, list) else value


def await_status(connection: Any, uuid: str, status: str) -> Any:
    """The server, when it has this status and nothing is under way. Raises AssertionError if it comes to another end."""
    found = until(
        lambda: connection.compute.get_server(uuid),
        lambda found: found.status in (status, "ERROR") and found.task_state is None,
        f"{uuid} to become {status}",
        PATIENCE,
    )
    assert found.status == status, f"{found.status}: {found.fault}"
    return found


def pause_and_unpause(connection: Any, uuid: str) -> None:
    """Its guest stands still between."""
    for act, status in (("pause_server", "PAUSED"), ("unpause_server", "ACTIVE")):
        getattr(connection.compute, act)(uuid)
        await_status(connection, uuid, status)
