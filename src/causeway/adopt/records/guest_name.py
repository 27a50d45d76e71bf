"""Names of Nova's guests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def guest_name_of(template: str, row: Mapping[str, Any]) -> str:
    """The name that Nova gives the guest of an instance's row by ``[DEFAULT] instance_name_template``.

    As in `nova.objects.Instance.name`: a number is the row's, and a name that can't be made is the uuid.
    """
    number: int = row["id"]
    try:
        return template % number
    except TypeError:
        try:
            return template % dict(row)
        except (KeyError, TypeError, ValueError):
            return str(row["uuid"])


__all__ = ["guest_name_of"]
