"""docs/architecture/dependencies.md names exactly what the distributions require."""

from __future__ import annotations

import ast
import re
import sys
from importlib import metadata

import pytest

from tests.distributions import PYPROJECTS, ROOT, listed, project

PAGE = (ROOT / "docs/architecture/dependencies.md").read_text()
PROJECT = project()
# Needed to work on the project, not to run it: the page names these extras as a whole.
WHOLE = {"docs", "test"}


def names(distribution: str, extra: str = "") -> list[str]:
    """The packages of others that a distribution names; with ``extra``: those that this one adds."""
    return [one.name for one in listed(distribution, extra) if one.name not in PYPROJECTS]


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_dependency_stands_in_the_table_and_no_other() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| \S", section("Every installation"), re.MULTILINE)
    assert sorted(rows) == sorted(names("causeway"))


def test_every_package_of_an_extra_stands_in_the_table() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| ((?:`[\w-]+`(?:, )?)+) \| \S", section("Extras"), re.MULTILINE)
    found = [(name, extra) for name, extras in rows for extra in re.findall(r"`([\w-]+)`", extras)]
    wanted = [
        (name, extra) for extra in set(PROJECT["optional-dependencies"]) - WHOLE for name in names("causeway", extra)
    ]
    wanted += [(name, "embedded") for name in names("causeway-embedded")]
    wanted += [(name, "demo") for name in names("causeway-embedded", "demo")]
    assert sorted(found) == sorted(wanted)
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
    wanted = {
        normal(name)
        for distribution in PYPROJECTS
        for extra in ("", *project(distribution)["optional-dependencies"])
        for name in names(distribution, extra)
    }
    installed = metadata.packages_distributions()
    missing = {
        package
        for package in imported(folder) - sys.stdlib_module_names
        if package in installed and not {normal(each) for each in installed[package]} & (wanted | {*PYPROJECTS})
    }
    assert missing == set()
