"""Drains in the matrix: one of its own for each server, so that each takes its own fault."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from causeway.model.drains import AT_REST, DrainServerState
from causeway.store.api import drains as store
from tests.faults.answers import Answer, call
from tests.faults.clouds.site import Site, until
from tests.faults.moves.flows import Flow

PATH = "/os-causeway/drains"
# Of a drain that was asked for, and did what it was to do.
DONE = {"drain": DrainServerState.DONE, "drain-back": DrainServerState.REVERTED}
_AT_REST = [state.value for state in AT_REST]


def begin(site: Site, flow: Flow, uuid: str, *, afterwards: str = "confirm") -> Answer:
    """As an administrator asks for it. What is begun with it is what the next answer says."""
    old, new = flow.flavors
    wanted: dict[str, Any] = {
        "name": f"of {uuid}",
        "scope": {"servers": [uuid]},
        "targets": {"cells": ["cell2"]},
        "how": "warm",
        "flavors": {old: new},
        "afterwards": afterwards,
    }
    answer = call(site, "POST", PATH, {"drain": wanted}, by=site.admin)
    return _act(site, json.loads(answer.text)["drain"]["id"], "start") if answer.is_accepted else answer


def begin_records(site: Site, uuid: str) -> Answer:
    """The same, of a server that is on no host."""
    wanted = {"name": f"of {uuid}", "scope": {"servers": [uuid]}, "targets": {"cells": ["cell2"]}}
    answer = call(site, "POST", PATH, {"drain": wanted}, by=site.admin)
    return _act(site, json.loads(answer.text)["drain"]["id"], "start") if answer.is_accepted else answer


def roll_back(site: Site, uuid: str) -> Answer:
    return _act(site, _rows(site, uuid)[-1][0], "rollback")


def prepare(site: Site, flow: Flow, uuid: str) -> None:
    """A drain that has moved the server, and leaves its confirm to its owner."""
    answer = begin(site, flow, uuid, afterwards="owners")
    assert answer.is_accepted, answer.text
    assert until(lambda: is_at_rest(site, uuid), bool)
    assert [state for _drain, state in _rows(site, uuid)] == [DrainServerState.MOVED.value]


def is_at_rest(site: Site, uuid: str) -> bool:
    """No drain is to do anything with the server any more."""
    query = (
        sa.select(sa.func.count())
        .select_from(store.SERVERS)
        .join(store.DRAINS, store.DRAINS.c.id == store.SERVERS.c.drain_id)
        .where(store.SERVERS.c.instance_uuid == uuid, store.DRAINS.c.state.not_in(_AT_REST))
    )
    with site.api.read() as connection:
        return not connection.execute(query).scalar_one()


def is_done(site: Site, operation: str, uuid: str) -> bool:
    return [state for _drain, state in _rows(site, uuid)] == [DONE[operation].value]


def _act(site: Site, drain_id: str, action: str) -> Answer:
    return call(site, "POST", f"{PATH}/{drain_id}/action", {action: None}, by=site.admin)


def _rows(site: Site, uuid: str) -> list[tuple[str, str]]:
    columns = store.SERVERS.c
    query = (
        sa.select(columns.drain_id, columns.state)
        .join(store.DRAINS, store.DRAINS.c.id == columns.drain_id)
        .where(columns.instance_uuid == uuid)
        .order_by(store.DRAINS.c.created_at)
    )
    with site.api.read() as connection:
        return [(row.drain_id, row.state) for row in connection.execute(query)]
