"""What a process notifies of the changes that it saves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_context import context as oslo_context

from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.notify.saved_states import SavedStates
from causeway.roles.conductor import make_cell_conductor
from causeway.roles.surroundings import make_transports
from causeway.store.cell import instances
from causeway.store.database import Database, statements
from tests.unit.new_databases import new_database
from tests.unit.notify.conftest import BUS, Ear, notifying_config


@pytest.fixture
def database(tmp_path: Path, instance: Instance) -> Iterator[Database]:
    """A cell with one server."""
    with new_database(tmp_path, "cell") as database:
        with database.write() as connection:
            instances.insert(connection, instance)
        yield database


@pytest.fixture(autouse=True)
def no_context() -> Iterator[None]:
    """No request of another test is this thread's."""
    before = oslo_context.get_current()
    vars(oslo_context._request_store).pop("context", None)
    yield
    if before is not None:
        before.update_store()


def test_a_saved_change_is_notified_as_it_was_saved(
    listening: Any, context: RequestContext, instance: Instance, database: Database
) -> None:
    notifier, ear = listening(notify_on_state_change="vm_and_task_state")
    saved = SavedStates(notifier)

    def observer(of: Database, change: Any) -> None:
        # Before it is notified, somebody else changes the server again.
        database.observer = None
        instances.update(database, instance.uuid, task_state=None, vm_state=VmState.STOPPED)
        saved(of, change)

    database.observer = observer
    context.update_store()
    instances.update(database, instance.uuid, task_state=TaskState.POWERING_OFF)
    (heard,) = ear.all(1)
    assert heard.data["state_update"]["nova_object.data"] == {
        "old_state": "active",
        "state": "active",
        "old_task_state": None,
        "new_task_state": "powering-off",
    }
    assert (heard.data["task_state"], heard.data["old_display_name"]) == ("powering-off", None)
    assert (heard.publisher_id, heard.data["request_id"]) == ("nova-api:controller", "req-1")
    assert heard.data["tags"] == ["t"]
    assert "secret-token" not in repr(heard)


def test_without_a_request_the_system_acts(listening: Any, instance: Instance, database: Database) -> None:
    notifier, ear = listening(notify_on_state_change="vm_state")
    database.observer = SavedStates(notifier)
    instances.update(database, instance.uuid, vm_state=VmState.STOPPED)
    (heard,) = ear.all(1)
    assert (heard.data["action_initiator_user"], heard.data["request_id"]) == (None, None)


def test_what_nobody_wants_is_not_read(listening: Any, instance: Instance, database: Database) -> None:
    notifier, ear = listening(notify_on_state_change="vm_state")
    database.observer = SavedStates(notifier)
    before = statements.snapshot()[database.name]
    instances.update(database, instance.uuid, task_state=TaskState.POWERING_OFF)
    # The states before, and the update.
    assert statements.snapshot()[database.name] - before == 2
    instances.update(database, instance.uuid, display_name="renamed")
    (heard,) = ear.all(1)
    assert (heard.data["old_display_name"], heard.data["display_name"]) == ("server", "renamed")


@pytest.mark.parametrize("wanted", ["vm_state", None])
def test_the_conductor_of_a_cell_notifies_of_what_it_saves(
    bus: Ear, instance: Instance, database: Database, wanted: str | None
) -> None:
    bus.clear()
    conf = notifying_config(BUS, notify_on_state_change=wanted)
    queues = make_transports(conf)
    conductor = make_cell_conductor(conf, queues, "host9", database, "causeway-memory://cell-of-tests")
    assert (database.observer is not None) is (wanted is not None)
    instances.update(database, instance.uuid, vm_state=VmState.STOPPED)
    conductor.stop()
    queues.cleanup()
    if wanted is not None:
        (heard,) = bus.all(1)
        assert (heard.event_type, heard.publisher_id) == ("instance.update", "nova-conductor:host9")
