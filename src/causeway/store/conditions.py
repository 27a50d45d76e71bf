"""Conditions of a list of servers: each as SQL, if there is a column for it, and as a predicate over a server that was read.

Both forms are equivalent. The predicate applies to servers that have no row yet (build requests), and to rows that were read by
uuid because the server was moving. The SQL applies to rows of cells, and the predicate if there is no SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from causeway.model.states import STATUS_TABLE, ServerStatus, VmState
from causeway.store.cell.instances import TABLE, TAGS
from causeway.store.listed import Listed
from causeway.store.patterns import compile_pattern, is_plain


class Condition(Protocol):
    """``columns``: what `matches` needs of a row; ``needs_tags``: whether it needs the tags as well."""

    @property
    def columns(self) -> frozenset[str]: ...

    @property
    def needs_tags(self) -> bool: ...

    def clause(self) -> sa.ColumnElement[bool] | None:
        """The condition as SQL; None if a database can't decide it."""
        ...

    def matches(self, server: Listed) -> bool: ...


@dataclass(frozen=True)
class _OneColumn:
    column: str
    needs_tags: bool = field(default=False, kw_only=True)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})


@dataclass(frozen=True)
class OneOf(_OneColumn):
    """A column has one of some values (None: it is not set)."""

    values: tuple[Any, ...]

    def clause(self) -> sa.ColumnElement[bool]:
        return self.clause_on(TABLE.c[self.column])

    def clause_on(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        """The condition on a column of another table that has the same values."""
        given = [value for value in self.values if value is not None]
        condition: sa.ColumnElement[bool] = column.in_(given) if given else sa.false()
        return sa.or_(condition, column.is_(None)) if None in self.values else condition

    def matches(self, server: Listed) -> bool:
        return server.values[self.column] in self.values


@dataclass(frozen=True)
class Between(_OneColumn):
    """A column has a time from ``first`` to ``last``, inclusive."""

    first: datetime
    last: datetime

    def clause(self) -> sa.ColumnElement[bool]:
        return TABLE.c[self.column].between(self.first, self.last)

    def matches(self, server: Listed) -> bool:
        value = server.values[self.column]
        return value is not None and self.first <= value <= self.last


@dataclass(frozen=True)
class Matches(_OneColumn):
    """A column matches a regular expression somewhere, as Nova's ``name`` filter does.

    Databases only get expressions that none of them needs long for.
    """

    pattern: str

    def clause(self) -> sa.ColumnElement[bool] | None:
        return TABLE.c[self.column].regexp_match(self.pattern) if is_plain(self.pattern) else None

    def matches(self, server: Listed) -> bool:
        return compile_pattern(self.pattern).search(str(server.values[self.column] or "")) is not None


@dataclass(frozen=True)
class ChangedSince:
    moment: datetime
    columns: frozenset[str] = frozenset({"created_at", "updated_at"})
    needs_tags: bool = False

    def clause(self) -> sa.ColumnElement[bool]:
        new = sa.and_(TABLE.c.updated_at.is_(None), TABLE.c.created_at >= self.moment)
        return sa.or_(TABLE.c.updated_at >= self.moment, new)

    def matches(self, server: Listed) -> bool:
        changed = server.values["updated_at"] or server.values["created_at"]
        return changed is not None and changed >= self.moment


@dataclass(frozen=True)
class ChangedBefore:
    moment: datetime
    columns: frozenset[str] = frozenset({"created_at", "updated_at"})
    needs_tags: bool = False

    def clause(self) -> sa.ColumnElement[bool]:
        new = sa.and_(TABLE.c.updated_at.is_(None), TABLE.c.created_at <= self.moment)
        return sa.or_(TABLE.c.updated_at <= self.moment, new)

    def matches(self, server: Listed) -> bool:
        changed = server.values["updated_at"] or server.values["created_at"]
        return changed is not None and changed <= self.moment


@dataclass(frozen=True)
class Deleted:
    """Only deleted servers, or only those that are not."""

    wanted: bool
    columns: frozenset[str] = frozenset({"deleted"})
    needs_tags: bool = False

    def clause(self) -> sa.ColumnElement[bool]:
        return TABLE.c.deleted.is_(self.wanted)

    def matches(self, server: Listed) -> bool:
        return server.values["deleted"] is self.wanted


def _shows(vm_state: VmState, status: ServerStatus) -> sa.ColumnElement[bool] | None:
    """The rows of a vm_state whose task_state lets them show a status."""
    default, by_task = STATUS_TABLE[vm_state]
    tasks = [task.value for task, shown in by_task.items() if shown == status]
    is_state = TABLE.c.vm_state == vm_state.value
    if default == status:
        others = [task.value for task, shown in by_task.items() if shown != status]
        if not others:
            return is_state
        return sa.and_(is_state, sa.or_(TABLE.c.task_state.is_(None), TABLE.c.task_state.not_in(others)))
    return sa.and_(is_state, TABLE.c.task_state.in_(tasks)) if tasks else None


@dataclass(frozen=True)
class HasStatus:
    """The status that users see is one of these."""

    statuses: tuple[ServerStatus, ...]
    columns: frozenset[str] = frozenset({"deleted", "vm_state", "task_state"})
    needs_tags: bool = False

    def clause(self) -> sa.ColumnElement[bool]:
        found = [_shows(vm_state, status) for vm_state in STATUS_TABLE for status in self.statuses]
        shown = sa.and_(TABLE.c.deleted.is_(False), sa.or_(sa.false(), *[one for one in found if one is not None]))
        return sa.or_(shown, TABLE.c.deleted.is_(True)) if ServerStatus.DELETED in self.statuses else shown

    def matches(self, server: Listed) -> bool:
        return server.status in self.statuses


@dataclass(frozen=True)
class HasTags:
    """``all_of``: the server has every tag, else at least one of them. ``negated``: the opposite."""

    tags: tuple[str, ...]
    all_of: bool
    negated: bool = False
    columns: frozenset[str] = frozenset()
    needs_tags: bool = True

    def clause(self) -> sa.ColumnElement[bool]:
        def any_of(tags: Collection[str]) -> sa.ColumnElement[bool]:
            return sa.exists().where(TAGS.c.resource_id == TABLE.c.uuid, TAGS.c.tag.in_(tags)).correlate(TABLE)

        found = sa.and_(*[any_of([tag]) for tag in self.tags]) if self.all_of else any_of(self.tags)
        return sa.not_(found) if self.negated else found

    def matches(self, server: Listed) -> bool:
        has = (tag in server.tags for tag in self.tags)
        return (all(has) if self.all_of else any(has)) is not self.negated


@dataclass(frozen=True)
class Predicate:
    """A condition that no column has, such as an address."""

    test: Callable[[Listed], bool]
    columns: frozenset[str]
    needs_tags: bool = False

    def clause(self) -> None:
        return None

    def matches(self, server: Listed) -> bool:
        return self.test(server)


def has_address(pattern: str, version: int) -> Predicate:
    """Some fixed address of this IP version matches a regular expression from its beginning on."""
    compiled = compile_pattern(pattern)

    def test(server: Listed) -> bool:
        return any(
            ip.version == version and compiled.match(ip.address) is not None
            for vif in server.vifs
            for ip in vif.fixed_ips
        )

    return Predicate(test, frozenset({"network_info"}))


__all__ = [
    "ChangedBefore",
    "ChangedSince",
    "Condition",
    "Deleted",
    "HasStatus",
    "HasTags",
    "Matches",
    "OneOf",
    "Predicate",
    "has_address",
]
