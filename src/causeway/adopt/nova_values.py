"""The values in files in nova.conf's form, as they are written there, and what their references to other options stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from oslo_config import cfg, iniparser

from causeway.errors import Misconfigured

#: group, option
Place = tuple[str, str]
_REFERENCE = re.compile(r"\$\$|\\\$|\$(?:\{([_a-z][._a-z0-9]*)\}|([_a-z][._a-z0-9]*))", re.IGNORECASE)


class UnknownReference(Exception):
    """A value names an option that nothing sets."""


def read(files: Iterable[Path]) -> dict[Place, list[str]]:
    """Group and option, as written -> its values in the order of the files. Raises Misconfigured if one can't be read."""
    found: dict[Place, list[str]] = {}
    for path in files:
        for group, options in sections(path).items():
            for name, values in options.items():
                found.setdefault((group, name), []).extend(values)
    return found


def sections(path: Path) -> dict[str, dict[str, list[str]]]:
    """Raises Misconfigured if the file can't be read."""
    found: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path), found).parse()
    except iniparser.ParseError as failure:
        # Its text shows the line.
        raise Misconfigured(f"{path}, line {failure.lineno}: {failure.msg}.") from None
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is no text in UTF-8"
        raise Misconfigured(f"{path}: {reason}.") from None
    return found


def replace_references(value: str, group: str, meaning: Callable[[str, str], str | None]) -> str:
    """``meaning``: of group and option; None: the reference stays. It raises UnknownReference."""

    def one(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return match[0]
        of_group, _dot, option = name.rpartition(".")
        found = meaning(of_group or group, option)
        return match[0] if found is None else found

    return _REFERENCE.sub(one, value)


def line(name: str, value: str) -> str:
    """``name = value``, so that it is read as it was: with quotes and continuations where they are needed."""
    first, *more = value.split("\n")
    if first != first.strip() or (first and first[0] == first[-1] and first[0] in "\"'"):
        first = f'"{first}"'
    return "\n".join([f"{name} = {first}".rstrip(), *(f"    {each}" for each in more if each)])


def escaped(value: str) -> str:
    """A value with dollar signs, so that none begins a reference."""
    return value.replace("$", "$$")


__all__ = ["Place", "UnknownReference", "escaped", "line", "read", "replace_references", "sections"]
