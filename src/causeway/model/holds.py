"""Holds: an owner's wish that a server is not moved before a moment.

``openstack server set --property causeway:hold=2027-03-05 SERVER``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from causeway import errors

PROPERTY = "causeway:hold"


def held_until(metadata: Mapping[str, str]) -> datetime | None:
    """When a server's hold ends, in UTC without a zone, as in the databases; None if it has no hold. A date means its first
    moment.

    Raises BadRequest for any other text. Its author wanted the server to stay, so the server must not be moved.
    """
    text = metadata.get(PROPERTY)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as unreadable:
        raise errors.BadRequest(
            f'Its property {PROPERTY} says "{text}", which is no date: set it to one like 2027-03-05 or'
            " 2027-03-05T18:00:00+01:00, or unset it."
        ) from unreadable
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
