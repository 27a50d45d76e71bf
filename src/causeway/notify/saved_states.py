"""Notifies of every change of a server's states that a process saves: ``instance.update``.

The store observes the changes (`causeway.store.state_changes`). A process that dies between the commit and the notification has
not sent it, as in Nova.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from oslo_context import context as oslo_context

from causeway.context import RequestContext, admin_context
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.notify.notifier import Notifier
from causeway.store.cell import block_devices, instances
from causeway.store.cells import Cells
from causeway.store.database import Database
from causeway.store.state_changes import StateChange


class SavedStates:
    """The observer of databases whose changes a notifier reports."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def __call__(self, database: Database, change: StateChange) -> None:
        """Raises DatabaseFailed if the server can't be read."""
        before, after = change.before, change.after
        renamed = before.display_name != after.display_name
        states = (before.vm_state, before.task_state), (after.vm_state, after.task_state)
        if not self._notifier.wants_update(*states, renamed=renamed):
            return
        found = instances.find(database, change.uuid, deleted=True)
        if found is None:
            # Its record was deleted for good since.
            return
        # Others may have changed it since; theirs are notifications of their own.
        saved = replace(found, vm_state=after.vm_state, task_state=after.task_state, display_name=after.display_name)
        self._notifier.instance_update(
            _current_context(),
            saved,
            old_vm_state=before.vm_state,
            old_task_state=before.task_state,
            old_display_name=before.display_name if renamed else None,
            block_devices_of=lambda instance: block_devices.of_instance(database, instance.uuid),
        )


def devices_of(cells: Cells, instance: Instance) -> Iterable[BlockDevice]:
    """Looks up a server's block devices where it lives. Raises ServerNotFound, DatabaseFailed."""
    _cell, database = cells.of_server(instance.uuid)
    return block_devices.of_instance(database, instance.uuid)


def _current_context() -> RequestContext:
    """The context of the request that this thread works for; if there is none, one of an administrator, without secrets."""
    current = oslo_context.get_current()
    return current if isinstance(current, RequestContext) else admin_context()
