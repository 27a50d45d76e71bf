"""How the functional suite by URL is dealt to lanes that run at the same time."""

from __future__ import annotations

from tests.functional.processes.suite_lanes import deal, read

FILES = {"tests/a.py": 5, "tests/b.py": 1, "tests/c.py": 3, "tests/d.py": 2}
TESTS = [f"{file}::test_{number}" for file, count in FILES.items() for number in range(count)]


def test_what_pytest_collected_is_read() -> None:
    found = read(
        "tests/x/test_a.py::test_b[c d]\ntests/x/test_a.py::TestE::test_f\n\n"
        "2 tests are of one process: they change code\n2/4 tests collected (2 deselected) in 2.87s\n"
    )
    assert found.tests == ["tests/x/test_a.py::test_b[c d]", "tests/x/test_a.py::TestE::test_f"]
    assert found.of_one_process == {"they change code": 2}


def test_each_lane_gets_whole_files_in_their_order_and_about_as_many_tests() -> None:
    first, second = deal(TESTS, 2)
    assert first == [test for test in TESTS if test.startswith(("tests/a.py", "tests/b.py"))]
    assert second == [test for test in TESTS if test.startswith(("tests/c.py", "tests/d.py"))]


def test_one_lane_gets_all() -> None:
    assert deal(TESTS, 1) == [TESTS]


def test_a_lane_may_get_nothing() -> None:
    assert deal(TESTS[:1], 2) == [TESTS[:1], []]
