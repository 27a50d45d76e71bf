"""What pyproject.toml says of the distributions of this repository: their requirements, with those of their extras."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECTS = {"causeway": ROOT / "pyproject.toml", "causeway-embedded": ROOT / "distributions/embedded/pyproject.toml"}
_LINE = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+)(?: --hash=sha256:[0-9a-f]{64})+")


def project(name: str = "causeway") -> dict[str, Any]:
    """The table ``[project]`` of a distribution of ours."""
    found: dict[str, Any] = tomllib.loads(PYPROJECTS[name].read_text())["project"]
    return found


def listed(name: str, extra: str = "") -> list[Requirement]:
    """What a distribution lists; with ``extra``: what this one adds."""
    table = project(name)
    lines = table["optional-dependencies"][extra] if extra else table["dependencies"]
    return [Requirement(line) for line in lines]


def every_requirement() -> Iterator[tuple[str, Requirement]]:
    """Where it stands, and the requirement; of all distributions, without those that are ours."""
    for name in PYPROJECTS:
        for extra in ("", *project(name).get("optional-dependencies", {})):
            for one in listed(name, extra):
                if one.name not in PYPROJECTS:
                    yield f"{name}[{extra}]", one


def packages_of(*extras: str) -> set[str]:
    """What ``causeway[extras]`` names, also by other extras and by the second distribution; in the normal form of names."""
    return {canonicalize_name(one.name) for one in _named("causeway", ("", *extras), set())}


def _named(name: str, extras: tuple[str, ...], seen: set[tuple[str, str]]) -> list[Requirement]:
    found = []
    for extra in extras:
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for one in listed(name, extra):
            found += _named(one.name, ("", *one.extras), seen) if one.name in PYPROJECTS else [one]
    return found


def pinned(path: Path) -> dict[str, str]:
    """Package -> version, of a list and of those that it includes. Fails at a line without a hash."""
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if line.startswith("-r "):
            found |= pinned(path.parent / line.removeprefix("-r "))
        elif not line.startswith("#"):
            matched = _LINE.fullmatch(line)
            assert matched is not None, f"{path.name}: {line}"
            found[canonicalize_name(matched["name"])] = matched["version"]
    return found
