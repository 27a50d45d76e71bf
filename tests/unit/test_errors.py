"""The tree of errors in the manual is the tree of the classes."""

from __future__ import annotations

import re

from causeway import errors


def below(parent: type[errors.CausewayError], depth: int = 0) -> list[tuple[int, str, int, str]]:
    """(depth, name, HTTP status, code) of a class and those below it."""
    found = [(depth, parent.__name__, parent.status, parent.code)]
    for child in parent.__subclasses__():
        if child.__module__ == errors.__name__:
            found += below(child, depth + 1)
    return found


def test_the_manual_has_every_error_with_its_status_and_code() -> None:
    line = re.compile(r"^    ([ │├└─]*)(\w+) +(\d{3})  (\w+)", re.MULTILINE)
    shown = [(len(at) // 4, name, int(status), code) for at, name, status, code in line.findall(errors.__doc__ or "")]
    kinds = {each.__name__ for each in errors.NotFound.__subclasses__()} - {"ServerNotFound"}
    wanted = [each for each in below(errors.CausewayError) if each[1] not in kinds]
    assert sorted(shown) == sorted(wanted)
