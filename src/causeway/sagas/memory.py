"""The fields of a saga's memory that are known when the saga begins. Its steps write all others.

Example::

    @dataclass
    class CopyMemory:
        source: str                      # without a default: known from the start
        rate: Given[int | None] = None   # also known from the start, but the request may leave it out
        copied: int = 0                  # a step writes it

A step that reads ``copied`` must come after the step that writes it; `causeway.sagas.recipe.Recipe.unwritten` checks that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, TypeVar, get_type_hints

T = TypeVar("T")
_GIVEN: Final = "given"
_MADE_OF: Final = "made_of"

#: marks a field with a default that steps may read from the start, because the request may fill it
Given = Annotated[T, _GIVEN]


def known_at_start(memory: type[Any]) -> frozenset[str]:
    """Returns the fields of a memory that are known when a saga begins: those without a default, and those that are `Given`."""
    types = get_type_hints(memory, include_extras=True)
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(memory)
        if _GIVEN in getattr(types[field.name], "__metadata__", ())
        or (field.default is missing and field.default_factory is missing)
    )


def made_of(*fields: str) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """Says of a property of a memory which fields it reads, so that steps may declare that they read the property.

    Steps that work on memories of several kinds do: one kind has a property where another has a field. Put below ``@property``.
    """

    def mark(getter: Callable[[Any], T]) -> Callable[[Any], T]:
        vars(getter)[_MADE_OF] = frozenset(fields)
        return getter

    return mark


def fields_of(memory: type[Any], names: Iterable[str]) -> frozenset[str]:
    """The names, with the fields of which it is `made_of` instead of each property."""
    found: set[str] = set()
    for name in names:
        getter = getattr(getattr(memory, name, None), "fget", None)
        found |= getattr(getter, _MADE_OF, {name})
    return frozenset(found)
