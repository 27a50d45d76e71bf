"""The changes of servers' states and names that a transaction makes, for the observer of the database.

A transaction collects them only if its database has an observer (`Database.observer`). Whoever writes states looks with `of`
whether they are collected, since the states before must be read then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from causeway.model.states import TaskState, VmState

_OPTION = "causeway_state_changes"


@dataclass(frozen=True)
class States:
    """What is observed of a server."""

    vm_state: VmState
    task_state: TaskState | None
    display_name: str

    @classmethod
    def of_row(cls, row: Mapping[Any, Any]) -> States:
        """From the values of columns with these names."""
        task = row["task_state"]
        return cls(VmState(row["vm_state"]), None if task is None else TaskState(task), row["display_name"])

    def changed(self, values: Mapping[Any, Any]) -> States:
        """The states after an update with these values of columns."""
        return self.of_row({**self.__dict__, **{name: values[name] for name in OBSERVED & values.keys()}})


OBSERVED = frozenset(States.__dataclass_fields__)


@dataclass(frozen=True)
class StateChange:
    uuid: str
    before: States
    after: States


class StateChanges:
    """The changes of one transaction. Several changes of one server are one."""

    def __init__(self) -> None:
        self._by_uuid: dict[str, StateChange] = {}

    def note(self, uuid: str, before: States, after: States) -> None:
        earlier = self._by_uuid.get(uuid)
        self._by_uuid[uuid] = StateChange(uuid, before if earlier is None else earlier.before, after)

    def all(self) -> list[StateChange]:
        """In the order of each server's first change, without servers that are as they were before."""
        return [change for change in self._by_uuid.values() if change.before != change.after]


def collect_in(connection: sa.Connection) -> StateChanges:
    """Has the changes of a transaction collected."""
    changes = StateChanges()
    connection.execution_options(**{_OPTION: changes})
    return changes


def of(connection: sa.Connection) -> StateChanges | None:
    """The changes of a transaction so far; None if nobody observes its database."""
    changes: StateChanges | None = connection.get_execution_options().get(_OPTION)
    return changes
