"""An owner's wish that a server is not moved before a moment.

``openstack server set --property causeway:hold=2027-03-05 SERVER``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from causeway import errors

PROPERTY = "causeway:hold"


def held_until(metadata: Mapping[str, str]) -> datetime | None:
    """In UTC without a zone, as every time in the databases is; None: the server has no hold. A date is its first moment.

    Raises BadRequest for what is no date: who wrote that wanted the server to stay, so it is not to be moved.
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
