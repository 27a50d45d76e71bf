"""What `make test` runs and what `make test-rest` runs is every test, and none twice (tests/quick.py)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compiling import share_of
from tests.quick import EVERY_CASE, REST, ROOT, is_left_out, parts_of

NONE: frozenset[str] = frozenset()


def test_of_a_whole_cloud_each_test_runs_with_its_first_case() -> None:
    file = "tests/functional/servers/resize/test_it.py"
    cases = [f"{file}::test_a[confirm]", f"{file}::test_a[revert]", f"{file}::test_b", f"{file}::test_a[both]"]
    parts = parts_of([(case, NONE) for case in cases])
    assert list(parts.values()) == ["quick", "rest", "quick", "rest"]


def test_two_files_may_have_a_test_of_the_same_name() -> None:
    files = ("tests/faults/test_it.py", "tests/faults/test_it_too.py")
    assert set(parts_of([(f"{file}::test_a[1]", NONE) for file in files]).values()) == {"quick"}


def test_what_takes_milliseconds_runs_with_all_its_cases() -> None:
    tests = [(f"tests/unit/model/test_it.py::test_a[{case}]", NONE) for case in range(3)]
    assert set(parts_of(tests).values()) == {"quick"}


@pytest.mark.parametrize("marker", ["long", "libvirt", "integration", "browser"])
def test_what_takes_long_is_left_to_the_rest_and_its_next_case_is_too(marker: str) -> None:
    tests = [(f"tests/unit/test_it.py::test_a[{case}]", frozenset({marker, "timeout"})) for case in range(2)]
    assert set(parts_of(tests).values()) == {"rest"}


def test_real_guests_and_processes_are_left_to_the_rest() -> None:
    assert {part for folder in REST for part in parts_of([(f"{folder}/test_it.py::test_a", NONE)]).values()} == {"rest"}


def test_the_folders_are_there() -> None:
    assert [folder for folder in (*EVERY_CASE, *REST) if not (ROOT / folder).is_dir()] == []


def test_each_folder_says_what_it_proves() -> None:
    packages = (ROOT / "tests").rglob("__init__.py")
    assert [str(package) for package in packages if ast.get_docstring(ast.parse(package.read_text())) is None] == []


@pytest.mark.parametrize("folder", REST)
def test_nothing_below_a_folder_of_the_rest_is_collected_for_the_quick_part(folder: str) -> None:
    for path in (ROOT / folder, ROOT / folder / "consoles", ROOT / folder / "consoles/test_screens.py"):
        assert is_left_out("quick", path)
        assert not is_left_out("rest", path)
        assert not is_left_out(None, path)
    assert not is_left_out("quick", (ROOT / folder).parent)


@given(st.integers(0, 30), st.integers(1, 6))
def test_workers_share_the_files_that_are_compiled(files: int, workers: int) -> None:
    given_files = [Path(f"test_{number}.py") for number in range(files)]
    shares = [share_of(given_files, worker, workers) for worker in range(workers)]
    assert sorted(path for share in shares for path in share) == sorted(given_files)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
