"""Placement in this process checks each of its schemas once, not with every request.

`jsonschema.validate` checks the schema itself against the metaschema whenever it is called. Placement's schemas are constants,
and that check was a third of the time of its calls. Everything else is as in `jsonschema.validate`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match
from placement import util

# Placement has about 60 schemas; if it ever makes some on the fly, those are not kept.
MOST = 500


class _Validators:
    def __init__(self) -> None:
        # The schema is kept with its validator: so its id stays its own.
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
    """From now on; the answer undoes it."""
    original = util.jsonschema
    util.jsonschema = SimpleNamespace(
        validate=_Validators().validate,
        ValidationError=jsonschema.ValidationError,
        FormatChecker=jsonschema.FormatChecker,
    )

    def undo() -> None:
        util.jsonschema = original

    return undo
