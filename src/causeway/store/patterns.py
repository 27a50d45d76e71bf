"""Regular expressions of users, evaluated in a time that grows only with the length of the text, for any expression.

The engines of Python, MariaDB and others backtrack: ``^(a+)+$`` keeps them busy for years with a name of 34 letters. RE2 does
not. It has no backreferences and no look-around, which are refused with the reason.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

import re2

# The longest expression, because each of its characters may cost time on each text.
MAX_LENGTH = 4096
LONGEST_FOR_DATABASES = 255
# Bytes that one expression may take; those that repeat repetitions would take more.
MAX_MEMORY = 1 << 20
# One piece of an expression that says the same to every database and to RE2: a character, a set of them, an anchor, "or".
_PIECE = re.compile(r"(?:[^\\\[\](){}*+?^$|]|\\[.^$*+?()\[\]{}|-]|\[\^?[A-Za-z0-9_]+\])(?P<repeated>[*+?]?)|[$|^]")


class InvalidPattern(ValueError):
    """The text is not an accepted regular expression. The message says why."""


class Pattern(Protocol):
    """A compiled expression."""

    def search(self, text: str) -> object | None: ...

    def match(self, text: str) -> object | None: ...


@lru_cache(maxsize=128)
def compile_pattern(text: str) -> Pattern:
    """Raises InvalidPattern."""
    if len(text) > MAX_LENGTH:
        raise InvalidPattern(f"a regular expression may have at most {MAX_LENGTH} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as error:
        raise InvalidPattern(_reason(error)) from None
    except UnicodeEncodeError:
        raise InvalidPattern("it has characters that are none") from None
    return compiled


def _reason(error: Exception) -> str:
    said = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
    if said.startswith(("invalid perl operator", "invalid escape sequence")):
        return f"{said} (backreferences and look-around are not supported)"
    return said


def is_plain(text: str) -> bool:
    """Whether the expression is safe for a database that backtracks: short, no groups, and at most one repetition."""
    if len(text) > LONGEST_FOR_DATABASES:
        return False
    repetitions = place = 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            return False
        repetitions += bool(piece.group("repeated"))
        place = piece.end()
    return repetitions <= 1


def sqlite_regexp(pattern: str, text: object) -> bool | None:
    """Implements SQLite's ``text REGEXP pattern``, for which SQLite has no engine."""
    return None if text is None else compile_pattern(pattern).search(str(text)) is not None


__all__ = ["InvalidPattern", "Pattern", "compile_pattern", "is_plain", "sqlite_regexp"]
