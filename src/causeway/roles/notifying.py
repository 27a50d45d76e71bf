"""Notifications of roles that write servers."""

from __future__ import annotations

from functools import partial

from causeway.notify import saved_states
from causeway.notify.notifier import Notifier
from causeway.roles.surroundings import Surroundings
from causeway.store.cells import Cells


def make_notifier(around: Surroundings, publisher_id: str, cells: Cells) -> Notifier:
    """A notifier that is closed with ``around``. Changes of servers' states in ``cells`` are notified, if that is configured."""
    made = around.notifier(publisher_id, partial(saved_states.devices_of, cells))
    if made.notifies_states:
        cells.observe(saved_states.SavedStates(made))
    return made
