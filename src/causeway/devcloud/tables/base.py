"""What all tables share: their base class, ids and times."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import JSON
from sqlalchemy.orm import DeclarativeBase

type_annotations: dict[Any, Any] = {dict[str, Any]: JSON, list[Any]: JSON, list[str]: JSON}


def now() -> str:
    """The present time in the form of rows: UTC, microseconds, no zone suffix."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def new_id() -> str:
    """A random UUID with dashes, as Image, Network and Block Storage use it."""
    return str(uuid4())


def new_hex() -> str:
    """A random UUID without dashes, as Identity uses it."""
    return uuid4().hex


class Base(DeclarativeBase):
    type_annotation_map = type_annotations
