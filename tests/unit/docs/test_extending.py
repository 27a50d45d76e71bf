"""docs/extending.md names the files and names of the code that are there, and all files that have its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.moves.flows import FLOWS

ROOT = Path(__file__).parents[3]
FOLDERS = ("src/causeway", ".", "src/causeway/scheduler/filters")
PAGE = (ROOT / "docs/extending.md").read_text()
CODE = "\n".join(file.read_text() for file in sorted((ROOT / "src/causeway").rglob("*.py")))
EVERYWHERE = ("src/causeway", "docs", "tests", "CHANGELOG.md")
# section -> how its example is called, and where all files that name it must be in the section. Tests name steps everywhere.
EXAMPLES = {
    "A filter": (r"NumInstancesFilter|max_instances_per_host", EVERYWHERE),
    "A weigher": (r"IoOpsWeigher|io_ops_weight_multiplier", EVERYWHERE),
    "An action, through all layers": (r"(?i)trim_?guest|guest_?trim", EVERYWHERE),
    "A step or a recipe": (r"\bHandOver\b", ("src/causeway", "docs", "benchmarks")),
}


def named_in(text: str) -> list[str]:
    """The files and folders that a text names."""
    return re.findall(r"`([\w./*-]+/[\w.*-]*)`", text) + re.findall(r"`(\w+\.(?:py|md))`", text)


def places(name: str) -> list[Path]:
    return [found for folder in FOLDERS for found in (ROOT / folder).glob(name.rstrip("/"))]


def files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        top = ROOT / folder
        yield from (
            file for file in ([top] if top.is_file() else top.rglob("*")) if file.suffix in (".py", ".md", ".sample")
        )


def section(title: str) -> str:
    found = re.search(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE)
    assert found, title
    return found[1]


def test_the_files_are_there() -> None:
    named = named_in(PAGE)
    missing = [name for name in named if not places(name)]
    assert len(named) > 25
    assert missing == []


def test_the_names_are_there() -> None:
    named = re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)(?:\([^`]*\))?`", PAGE)
    missing = [name for name in named if not re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", CODE)]
    assert len(named) > 20
    assert missing == []


@pytest.mark.parametrize("title", EXAMPLES)
def test_every_file_that_has_the_example_is_named(title: str) -> None:
    word, folders = EXAMPLES[title]
    named = {place for name in named_in(section(title)) for place in places(name)}
    having = {file for file in files(folders) if re.search(word, file.read_text(errors="replace"))}
    having -= {ROOT / "docs/extending.md", Path(__file__)}
    assert len(having) > 3
    assert sorted(str(file.relative_to(ROOT)) for file in having if not {file, *file.parents} & named) == []


def test_no_version_of_an_interface_is_given_as_an_example() -> None:
    """It would be taken when somebody reads it."""
    assert re.findall(r"\b1\.\d\d\b", PAGE) == []


def test_the_flow_of_the_example_has_cases() -> None:
    wanted = re.findall(r"--flow '([^']+)'", PAGE)
    assert wanted and all(any(name in flow.name for flow in FLOWS) for name in wanted)
