"""What another process may send at all: values that can be recorded in every database, and not too many of them.

Types are checked where values are converted (`causeway.rpc.endpoint`). What a type allows and no database takes would fail later,
in a transaction that is then retried for long: numbers of more than 64 bits, NUL characters, halves of surrogate pairs, NaN.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: bytes: more than the report of a host with thousands of guests needs
LARGEST = 16 * 2**20
# What the JSON of a value that needs a closer look has in it. Digits may be those of a text.
_SUSPECT = re.compile(rb"\\u0000|\d{19}")
_INTEGERS = range(-(2**63), 2**63)


def problem_of(value: Any, *, may_have_nul: bool = False) -> str | None:
    """Says why a JSON value must not be used; None if it may be. ``may_have_nul``: it is shown to users and not recorded."""
    try:
        encoded = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (RecursionError, TypeError, ValueError) as error:
        return f"it can't be written as JSON: {error}"
    if len(encoded) > LARGEST:
        return f"it has {len(encoded)} bytes, more than {LARGEST}"
    if _SUSPECT.search(encoded) is None:
        return None
    return _problem_in(value, may_have_nul)


def _problem_in(value: Any, may_have_nul: bool) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if value in _INTEGERS else f"the number {str(value)[:40]} has more than 64 bits"
    if isinstance(value, str):
        return None if may_have_nul or "\0" not in value else "a text has a NUL character"
    if isinstance(value, dict):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list):
        inside = value
    else:
        return None
    return next((problem for each in inside if (problem := _problem_in(each, may_have_nul)) is not None), None)
