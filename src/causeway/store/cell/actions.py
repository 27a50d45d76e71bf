"""Instance actions with their events, and faults: a server's history in one cell.

An action was last updated when its row says so, or when the last of its events ended, whatever is later.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from causeway.model.instance import ActionEvent, InstanceAction, InstanceFault
from causeway.store.cell_tables import InstanceActionEvents, InstanceActions, InstanceFaults
from causeway.store.columns import RowMapper, fitting
from causeway.store.database import Database, utcnow

ACTIONS: sa.Table = InstanceActions.__table__  # type: ignore[assignment]
EVENTS: sa.Table = InstanceActionEvents.__table__  # type: ignore[assignment]
FAULTS: sa.Table = InstanceFaults.__table__  # type: ignore[assignment]
ACTION = RowMapper(InstanceAction, ACTIONS)
EVENT = RowMapper(ActionEvent, EVENTS)
FAULT = RowMapper(InstanceFault, FAULTS)

_UUID: sa.BindParameter[str] = sa.bindparam("of_uuid")
_REQUEST: sa.BindParameter[str] = sa.bindparam("of_request")
_ACTION: sa.BindParameter[int] = sa.bindparam("of_action")
_INSERT_ACTION, _INSERT_EVENT = ACTIONS.insert(), EVENTS.insert()
_INSERT_AND_RETURN = _INSERT_ACTION.returning(ACTIONS.c.id)
_INSERT_AND_RETURN_IN_ORDER = _INSERT_ACTION.returning(ACTIONS.c.id, sort_by_parameter_order=True)
_NEWEST_ACTION = (
    sa.select(ACTIONS.c.id)
    .where(ACTIONS.c.instance_uuid == _UUID, ACTIONS.c.request_id == _REQUEST)
    .order_by(ACTIONS.c.id.desc())
    .limit(1)
)
_OPEN_EVENT = (
    sa.select(EVENTS.c.id)
    .where(EVENTS.c.action_id == _ACTION, EVENTS.c.event == sa.bindparam("of_event"), EVENTS.c.finish_time.is_(None))
    .order_by(EVENTS.c.id.desc())
    .limit(1)
)
_NEWEST_ACTION_WITH_EVENTS = (
    sa.select(ACTIONS.c.id, EVENTS.c.event, EVENTS.c.start_time)
    .select_from(ACTIONS.outerjoin(EVENTS, EVENTS.c.action_id == ACTIONS.c.id))
    .where(ACTIONS.c.id == _NEWEST_ACTION.scalar_subquery())
)
_EVENT_OF_NEWEST_ACTION = EVENTS.insert().from_select(
    ["action_id", *EVENT.fields],
    sa.select(
        ACTIONS.c.id, *(sa.bindparam(f"of_{name}", type_=EVENTS.c[name].type).label(name) for name in EVENT.fields)
    )
    .where(ACTIONS.c.instance_uuid == _UUID, ACTIONS.c.request_id == _REQUEST)
    .order_by(ACTIONS.c.id.desc())
    .limit(1),
)
# A row for each event, and one of an action that has none.
_HISTORY = (
    sa.select(ACTIONS.c.id.label("action_id"), *ACTION.columns, EVENTS.c.id.label("event_id"), *EVENT.columns)
    .select_from(ACTIONS.outerjoin(EVENTS, EVENTS.c.action_id == ACTIONS.c.id))
    .where(ACTIONS.c.instance_uuid == _UUID)
    .order_by(ACTIONS.c.id, EVENTS.c.id)
)
_LAST_EVENT = sa.select(sa.func.max(EVENTS.c.finish_time)).where(EVENTS.c.action_id == ACTIONS.c.id).scalar_subquery()
_FAULTS_OF = sa.select(*FAULT.columns).where(FAULTS.c.instance_uuid == _UUID).order_by(FAULTS.c.id)


def start_in(connection: sa.Connection, action: InstanceAction) -> int:
    """Records a new action. Returns its row id."""
    result = connection.execute(_INSERT_ACTION, _row_of_action(action))
    return int(result.inserted_primary_key[0])  # type: ignore[index]


def _row_of_action(action: InstanceAction) -> dict[str, Any]:
    now = utcnow()
    action.start_time = action.start_time or now
    return ACTION.to_row(action) | {"updated_at": action.updated_at or now}


def start(database: Database, action: InstanceAction) -> None:
    with database.write() as connection:
        start_in(connection, action)


def _action_id(connection: sa.Connection, uuid: str, request_id: str) -> int | None:
    found: int | None = connection.execute(
        _NEWEST_ACTION, {"of_uuid": uuid, "of_request": request_id}
    ).scalar_one_or_none()
    return found


def record_event_in(connection: sa.Connection, uuid: str, request_id: str, event: ActionEvent) -> None:
    """Adds an event to the newest action of a request, or completes its unfinished event of the same name and host.

    Without such an action nothing is recorded: no request caused the work (it is a periodic task's).
    """
    action_id = _action_id(connection, uuid, request_id)
    if action_id is None:
        return
    now = utcnow()
    event.start_time = event.start_time or now
    open_event = None
    if event.finish_time is not None:
        open_event = connection.execute(
            _OPEN_EVENT, {"of_action": action_id, "of_event": event.event}
        ).scalar_one_or_none()
    if open_event is None:
        connection.execute(_INSERT_EVENT, EVENT.to_row(event) | {"action_id": action_id})
    else:
        values = EVENT.to_row(event)
        del values["start_time"]
        connection.execute(EVENTS.update().where(EVENTS.c.id == open_event).values(values))
    changes: dict[str, Any] = {"updated_at": now}
    if event.result == "Error":
        changes["message"] = "Error"
    connection.execute(ACTIONS.update().where(ACTIONS.c.id == action_id).values(changes))


def add_events_in(connection: sa.Connection, uuid: str, request_id: str, events: list[ActionEvent]) -> None:
    """Adds finished events to the newest action of a request, if there is one, except those that it has."""
    if not events:
        return
    found = connection.execute(_NEWEST_ACTION_WITH_EVENTS, {"of_uuid": uuid, "of_request": request_id}).all()
    known = {(row.event, row.start_time) for row in found}
    fresh = [event for event in events if (event.event, event.start_time) not in known]
    if not found or not fresh:
        return
    action_id = found[0].id
    connection.execute(_INSERT_EVENT, [EVENT.to_row(event) | {"action_id": action_id} for event in fresh])
    # A failed event does not mean that the action failed: the caller sets the action's message.
    connection.execute(ACTIONS.update().where(ACTIONS.c.id == action_id).values(updated_at=utcnow()))


def add_first_events_in(connection: sa.Connection, uuid: str, request_id: str, events: list[ActionEvent]) -> None:
    """`add_events_in` for an action that has no events yet, which saves two statements."""
    if not events:
        return
    of_action = {"of_uuid": uuid, "of_request": request_id}
    rows = ({f"of_{name}": value for name, value in EVENT.to_row(event).items()} for event in events)
    connection.execute(_EVENT_OF_NEWEST_ACTION, [row | of_action for row in rows])


def record_event(database: Database, uuid: str, request_id: str, event: ActionEvent) -> None:
    with database.write() as connection:
        record_event_in(connection, uuid, request_id, event)


def of_instance(
    database: Database,
    uuid: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    changes_since: datetime | None = None,
    changes_before: datetime | None = None,
) -> list[InstanceAction]:
    """The server's actions without events, newest first. ``marker`` is a request id; unknown: an empty list."""
    query = (
        sa.select(*ACTION.columns, _LAST_EVENT.label("last_event"))
        .where(ACTIONS.c.instance_uuid == uuid)
        .order_by(ACTIONS.c.start_time.desc(), ACTIONS.c.id.desc())
    )
    if changes_since is not None:
        query = query.where(sa.or_(ACTIONS.c.updated_at >= changes_since, changes_since <= _LAST_EVENT))
    if changes_before is not None:
        in_time = sa.or_(_LAST_EVENT.is_(None), changes_before >= _LAST_EVENT)
        query = query.where(ACTIONS.c.updated_at <= changes_before, in_time)
    with database.read() as connection:
        found = [_updated(ACTION.from_row(row), row.last_event) for row in connection.execute(query)]
    if marker is not None:
        places = [place for place, action in enumerate(found) if action.request_id == marker]
        found = found[places[-1] + 1 :] if places else []
    return found if limit is None else found[:limit]


def newest(database: Database, uuid: str, name: str) -> InstanceAction | None:
    """The server's newest action of a name, without its events; None if there is none."""
    query = (
        sa.select(*ACTION.columns)
        .where(ACTIONS.c.instance_uuid == uuid, ACTIONS.c.action == name)
        .order_by(ACTIONS.c.id.desc())
        .limit(1)
    )
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else ACTION.from_row(row)


def newest_request_in(connection: sa.Connection, uuid: str, names: Collection[str]) -> str | None:
    """The request id of the server's newest action of one of these names; None if there is none."""
    query = (
        sa.select(ACTIONS.c.request_id)
        .where(ACTIONS.c.instance_uuid == uuid, ACTIONS.c.action.in_(names))
        .order_by(ACTIONS.c.id.desc())
        .limit(1)
    )
    found: str | None = connection.execute(query).scalar_one_or_none()
    return found


def is_recorded_in(connection: sa.Connection, uuid: str, request_id: str) -> bool:
    """Whether a request has an action of the server."""
    return _action_id(connection, uuid, request_id) is not None


def has_message_in(connection: sa.Connection, uuid: str, request_id: str, message: str) -> bool:
    """Whether `set_message_in` was called with this message for a request's newest action."""
    query = sa.select(ACTIONS.c.message).where(ACTIONS.c.id == _action_id(connection, uuid, request_id))
    return connection.execute(query).scalar_one_or_none() == fitting(message, ACTIONS.c.message)


def set_message_in(connection: sa.Connection, uuid: str, request_id: str, message: str | None) -> None:
    """Sets the message of a request's newest action, which users read. Truncates it to the column's length."""
    action_id = _action_id(connection, uuid, request_id)
    values = {"message": fitting(message, ACTIONS.c.message), "updated_at": utcnow()}
    connection.execute(ACTIONS.update().where(ACTIONS.c.id == action_id).values(values))


def get(database: Database, uuid: str, request_id: str) -> InstanceAction | None:
    """The newest action of a request with its events, newest event first."""
    with database.read() as connection:
        row = connection.execute(
            sa.select(ACTIONS.c.id, *ACTION.columns)
            .where(ACTIONS.c.instance_uuid == uuid, ACTIONS.c.request_id == request_id)
            .order_by(ACTIONS.c.id.desc())
            .limit(1)
        ).one_or_none()
        if row is None:
            return None
        events = connection.execute(
            sa.select(*EVENT.columns).where(EVENTS.c.action_id == row.id).order_by(EVENTS.c.id.desc())
        ).all()
    action = ACTION.from_row(row, events=[EVENT.from_row(event) for event in events])
    return _updated(action, *(event.finish_time for event in action.events))


def _updated(action: InstanceAction, *finished: datetime | None) -> InstanceAction:
    """Sets when an action was last updated. ``finished``: when its events ended, or the last of them."""
    times = [time for time in (action.updated_at, *finished) if time is not None]
    action.updated_at = max(times, default=None)
    return action


def history(connection: sa.Connection, uuid: str) -> list[InstanceAction]:
    """All actions with all events, oldest first, for a copy to another cell."""
    found: dict[int, InstanceAction] = {}
    for row in connection.execute(_HISTORY, {"of_uuid": uuid}):
        if row.action_id not in found:
            found[row.action_id] = ACTION.from_row(row)
        if row.event_id is not None:
            found[row.action_id].events.append(EVENT.from_row(row))
    return [_updated(action, *(event.finish_time for event in action.events)) for action in found.values()]


def insert_history(connection: sa.Connection, actions: list[InstanceAction]) -> None:
    """Writes copied actions with their events; their servers have none in this cell yet. Those of a server in their order."""
    if not actions:
        return
    rows = [_row_of_action(action) for action in actions]
    if not any(action.events for action in actions):
        connection.execute(_INSERT_ACTION, rows)
        return
    if connection.dialect.name == "sqlite":
        # It gives ids in the order of the rows. It would insert them one by one if they had to be returned in this order.
        ids = sorted(connection.execute(_INSERT_AND_RETURN, rows).scalars())
    else:
        ids = list(connection.execute(_INSERT_AND_RETURN_IN_ORDER, rows).scalars())
    events = [
        EVENT.to_row(event) | {"action_id": action_id}
        for action, action_id in zip(actions, ids, strict=True)
        for event in action.events
    ]
    connection.execute(_INSERT_EVENT, events)


def add_fault_in(connection: sa.Connection, uuid: str, fault: InstanceFault) -> None:
    fault.created_at = fault.created_at or utcnow()
    connection.execute(FAULTS.insert(), FAULT.to_row(fault) | {"instance_uuid": uuid})


def add_fault(database: Database, uuid: str, fault: InstanceFault) -> None:
    with database.write() as connection:
        add_fault_in(connection, uuid, fault)


def faults_in(connection: sa.Connection, uuid: str) -> list[InstanceFault]:
    """All faults of a server, oldest first."""
    return [FAULT.from_row(row) for row in connection.execute(_FAULTS_OF, {"of_uuid": uuid})]


def latest_faults(database: Database, uuids: list[str]) -> dict[str, InstanceFault]:
    """server -> its newest fault, for those that have one."""
    if not uuids:
        return {}
    with database.read() as connection:
        rows = connection.execute(
            sa.select(FAULTS.c.instance_uuid, *FAULT.columns)
            .where(FAULTS.c.instance_uuid.in_(uuids))
            .order_by(FAULTS.c.id)
        ).all()
    return {row.instance_uuid: FAULT.from_row(row) for row in rows}
