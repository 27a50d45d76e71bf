"""Checks each of Placement's schemas once in this process, not with every request.

`jsonschema.validate` checks the schema itself against the metaschema at each call. Placement's schemas are constants, and that
check was a third of the time of its calls. Everything else is as in `jsonschema.validate`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match
from placement import util

# Placement has about 60 schemas. The limit is for schemas that it might make on the fly.
MOST = 500


class _Validators:
    def __init__(self) -> None:
        # Keeps the schema with its validator, so that no other object gets its id.
        self._known: dict[int, tuple[Any, Any]] = {}

    def validate(self, instance: Any, schema: Any, **options: Any) -> None:
        known = self._known.get(id(schema))
        if known is None:
            kind = jsonschema.validators.validator_for(schema)
            kind.check_schema(schema)
            known = schema, kind
            if len(self._known) < MOST:
                self._known[id(schema)] = known
        error = best_match(known[1](schema, **options).iter_errors(instance))
        if error is not None:
            raise error


def check_once() -> Callable[[], None]:
    """Starts this. Returns a function that undoes it."""
    original = util.jsonschema
    util.jsonschema = SimpleNamespace(
        validate=_Validators().validate,
        ValidationError=jsonschema.ValidationError,
        FormatChecker=jsonschema.FormatChecker,
    )

    def undo() -> None:
        util.jsonschema = original

    return undo
