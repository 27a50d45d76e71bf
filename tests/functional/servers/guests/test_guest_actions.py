"""What hosts do to guests at once: each row of the table of actions, as users and consumers of notifications see it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.model import server_actions
from causeway.model.server_actions import GuestAction
from causeway.model.states import VmState
from causeway.virt.simulated.driver import SimulatedDriver
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.notified import CONFIGURATION, heard_by

CLOUD = {"config_files": [str(CONFIGURATION)]}
pytestmark = pytest.mark.embedded("breaks simulated hosts, and listens to what this process sends")

# action -> what is sent, what the driver is asked for, and how the server comes into a state in which it may begin
SENT: dict[str, tuple[GuestAction, Any, str, GuestAction | None]] = {
    "os-stop": (server_actions.STOP, None, "power_off", None),
    "os-start": (server_actions.START, None, "power_on", server_actions.STOP),
    "soft reboot": (server_actions.REBOOT, {"type": "SOFT"}, "reboot", None),
    "hard reboot": (server_actions.HARD_REBOOT, {"type": "HARD"}, "reboot", None),
    "pause": (server_actions.PAUSE, None, "pause", None),
    "unpause": (server_actions.UNPAUSE, None, "unpause", server_actions.PAUSE),
    "suspend": (server_actions.SUSPEND, None, "suspend", None),
    "resume": (server_actions.RESUME, None, "resume", server_actions.SUSPEND),
}


class Consumer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: list[str] = []

    def info(self, _context: Any, _publisher: str, event_type: str, _payload: Any, _metadata: Any) -> None:
        if event_type.startswith("instance.") and event_type.endswith((".start", ".end", ".error")):
            with self._lock:
                self._heard.append(event_type)

    error = info

    def heard_until(self, last: str) -> list[str]:
        until(lambda: list(self._heard), lambda events: last in events, f"{last} to be sent")
        with self._lock:
            found, self._heard = self._heard, []
        return found


@pytest.fixture(scope="module")
def consumer(module_cloud: Cloud) -> Iterator[Consumer]:
    consumer = Consumer()
    with heard_by(module_cloud.parts.conf, consumer):
        yield consumer


@pytest.fixture
def server(cloud: Cloud, consumer: Consumer) -> Any:
    server = cloud.boot()
    consumer.heard_until("instance.create.end")
    return server


def ask(cloud: Cloud, server: Any, name: str) -> None:
    sent = {"soft reboot": "reboot", "hard reboot": "reboot"}.get(name, name)
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={sent: SENT[name][1]})
    assert answer.status_code == 202


def ended(cloud: Cloud, server: Any, action: GuestAction) -> Any:
    """The server when the action's event is written and it has no task."""
    until(lambda: cloud.events(server, action.name), lambda events: bool(events), f"the end of {action.name}")
    return until(
        lambda: cloud.show(server), lambda found: found.task_state is None, f"the task of {action.name} to end"
    )


def ready_for(cloud: Cloud, server: Any, consumer: Consumer, before: GuestAction | None) -> None:
    if before is not None:
        ask(cloud, server, next(name for name, row in SENT.items() if row[0] is before))
        ended(cloud, server, before)
        consumer.heard_until(f"instance.{before.notification}.end")


def test_every_action_that_ends_in_another_state_is_here() -> None:
    rows = [each for each in vars(server_actions).values() if isinstance(each, GuestAction) and each.becomes]
    assert {id(action) for action, *_rest in SENT.values()} == {id(row) for row in rows}


@pytest.mark.parametrize("name", SENT)
def test_an_action_that_succeeds_is_notified_from_start_to_end(
    cloud: Cloud, consumer: Consumer, server: Any, name: str
) -> None:
    action, _value, _method, before = SENT[name]
    ready_for(cloud, server, consumer, before)
    ask(cloud, server, name)
    assert ended(cloud, server, action).vm_state == action.becomes
    assert cloud.events(server, action.name) == [(action.event, "Success")]
    sent = [f"instance.{action.notification}.{phase}" for phase in ("start", "end")]
    assert consumer.heard_until(sent[-1]) == sent


@pytest.mark.parametrize("name", SENT)
def test_an_action_that_fails_has_its_fault_and_no_end_is_notified(
    cloud: Cloud, consumer: Consumer, server: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest is as it was, but for one that could not be rebooted: nobody knows."""
    action, _value, method, before = SENT[name]
    ready_for(cloud, server, consumer, before)
    was = cloud.show(server).vm_state

    def breaks(*_arguments: Any, **_named: Any) -> None:
        raise errors.GuestFailed("The guest does not do that.")

    with monkeypatch.context() as broken:
        broken.setattr(SimulatedDriver, method, breaks)
        ask(cloud, server, name)
        found = ended(cloud, server, action)
    assert found.vm_state == (VmState.ERROR if "reboot" in name else was)
    assert cloud.events(server, action.name) == [(action.event, "Error")]
    assert [fault.message for fault in cloud.faults(server)] == ["The guest does not do that."]
    assert consumer.heard_until(f"instance.{action.notification}.start") == [f"instance.{action.notification}.start"]
