"""Flavors and who may use them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.store.api_tables import FlavorProjects, Flavors
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = Flavors.__table__  # type: ignore[assignment]
PROJECTS: sa.Table = FlavorProjects.__table__  # type: ignore[assignment]
MAPPER = RowMapper(Flavor, TABLE)


def create(database: Database, flavor: Flavor) -> Flavor:
    """Raises Conflict if the id or the name is taken."""
    try:
        with database.write() as connection:
            connection.execute(TABLE.insert(), MAPPER.to_row(flavor) | {"created_at": utcnow()})
    except sa.exc.IntegrityError as failure:
        raise errors.Conflict(f"Flavor with name {flavor.name} or ID {flavor.flavorid} already exists.") from failure
    return get(database, flavor.flavorid)


def _visible(query: sa.Select[Any], project_id: str | None) -> sa.Select[Any]:
    if project_id is None:
        return query
    allowed = sa.select(PROJECTS.c.flavor_id).where(PROJECTS.c.project_id == project_id)
    return query.where(sa.or_(TABLE.c.is_public.is_(True), TABLE.c.id.in_(allowed)))


def get(database: Database, flavorid: str, *, project_id: str | None = None) -> Flavor:
    """A flavor by its id; with ``project_id``, only if that project may use it. Raises FlavorNotFound."""
    query = _visible(sa.select(*MAPPER.columns).where(TABLE.c.flavorid == flavorid), project_id)
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        raise errors.FlavorNotFound(f"Flavor {flavorid} could not be found.")
    return MAPPER.from_row(row)


def list_all(database: Database, *, project_id: str | None = None) -> list[Flavor]:
    """Flavors that a project may use (None: all), by id."""
    query = _visible(sa.select(*MAPPER.columns), project_id).order_by(TABLE.c.flavorid, TABLE.c.id)
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(query)]


def update(database: Database, flavorid: str, **changes: Any) -> None:
    """Changes a flavor (description, extra_specs); raises FlavorNotFound."""
    values = MAPPER.changes(changes) | {"updated_at": utcnow()}
    with database.write() as connection:
        if not connection.execute(TABLE.update().where(TABLE.c.flavorid == flavorid).values(values)).rowcount:
            raise errors.FlavorNotFound(f"Flavor {flavorid} could not be found.")


def delete(database: Database, flavorid: str) -> None:
    """Raises FlavorNotFound. Servers keep their copy of it."""
    with database.write() as connection:
        if not connection.execute(TABLE.delete().where(TABLE.c.flavorid == flavorid)).rowcount:
            raise errors.FlavorNotFound(f"Flavor {flavorid} could not be found.")


def projects(database: Database, flavor: Flavor) -> list[str]:
    """Projects that were given access to a private flavor."""
    query = sa.select(PROJECTS.c.project_id).where(PROJECTS.c.flavor_id == flavor.id).order_by(PROJECTS.c.project_id)
    with database.read() as connection:
        return list(connection.execute(query).scalars())


def add_project(database: Database, flavor: Flavor, project_id: str) -> None:
    """Raises Conflict if the project has access already."""
    try:
        with database.write() as connection:
            connection.execute(PROJECTS.insert(), {"flavor_id": flavor.id, "project_id": project_id})
    except sa.exc.IntegrityError as failure:
        raise errors.Conflict(
            f"Flavor access already exists for flavor {flavor.flavorid} and project {project_id} combination."
        ) from failure


def remove_project(database: Database, flavor: Flavor, project_id: str) -> None:
    """Raises NotFound if the project had no access."""
    with database.write() as connection:
        removed = connection.execute(
            PROJECTS.delete().where(PROJECTS.c.flavor_id == flavor.id, PROJECTS.c.project_id == project_id)
        ).rowcount
    if not removed:
        raise errors.NotFound(f"Flavor access not found for {flavor.flavorid} / {project_id} combination.")
