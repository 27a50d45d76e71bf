"""docs/architecture/dependencies.md names exactly what pyproject.toml has."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/architecture/dependencies.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Needed to work on the project, not to run it: the page names these extras as a whole.
WHOLE = {"docs", "test"}


def names(requirements: list[str]) -> list[str]:
    return [found[0] for found in map(re.compile(r"[\w.-]+").match, requirements) if found]


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_dependency_stands_in_the_table_and_no_other() -> None:
    listed = re.findall(r"^\| `([^`]+)` \| \S", section("Every installation"), re.MULTILINE)
    assert sorted(listed) == sorted(names(PROJECT["dependencies"]))


def test_every_package_of_an_extra_stands_in_the_table() -> None:
    listed = re.findall(r"^\| `([^`]+)` \| `(\w+)` \| \S", section("Extras"), re.MULTILINE)
    extras = PROJECT["optional-dependencies"]
    wanted = [(name, extra) for extra in set(extras) - WHOLE for name in names(extras[extra])]
    assert sorted(listed) == sorted(wanted)
    assert all(f"extra `{extra}`" in section("Extras") for extra in WHOLE)


def test_what_is_written_by_hand_is_there() -> None:
    for path in re.findall(
        r"^\| [^|]+ \| `([^`]+)` \|", section("Written by hand although there are libraries"), re.MULTILINE
    ):
        assert (ROOT / "src/causeway" / path).exists() or (ROOT / path).exists(), path


def imported(folder: str) -> set[str]:
    """The top-level packages that Python files below ``folder`` import."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "scripts", "verify"])
def test_every_package_that_is_imported_is_a_dependency(folder: str) -> None:
    """It must not come only with another package, which may stop requiring it."""
    wanted = {normal(name) for extra in PROJECT["optional-dependencies"].values() for name in names(extra)}
    wanted |= {normal(name) for name in names(PROJECT["dependencies"])}
    installed = metadata.packages_distributions()
    missing = {
        package
        for package in imported(folder) - sys.stdlib_module_names
        if package in installed and not {normal(each) for each in installed[package]} & (wanted | {"causeway"})
    }
    assert missing == set()
