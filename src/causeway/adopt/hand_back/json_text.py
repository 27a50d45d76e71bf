"""JSON as Nova writes it: of ASCII only, as its tables in MySQL and MariaDB keep no characters of four bytes."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any) -> str:
    """``value``: of what JSON has."""
    return json.dumps(value)


__all__ = ["json_text"]
