"""Rows by their ids, and names that are taken already: refused in Keystone's words."""

from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.errors import conflict, not_found
from causeway.devcloud.tables.base import Base

Row = TypeVar("Row", bound=Base)


def find(session: Session, model: type[Row], row_id: Any, kind: str) -> Row:
    """The row with this id; ApiError 404 if there is none."""
    row = session.get(model, row_id)
    if row is None:
        raise not_found(f"Could not find {kind}: {row_id}.")
    return row


def refuse_taken(session: Session, model: type[Any], name: str, kind: str, domain_id: str | None = None) -> None:
    """ApiError 409 if there is one of this name, in the domain if that is given."""
    query = select(model).where(model.name == name)
    if domain_id is not None:
        query = query.where(model.domain_id == domain_id)
    if session.scalars(query).first() is not None:
        raise conflict(f"Conflict occurred attempting to store {kind} - a {kind} named {name} exists already.")
