"""Which cloud elsewhere is the one that a module of the suite wants, and which tests are of no cloud elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.conf import new_config
from tests import of_one_process
from tests.functional.processes.consumer import VERSIONED
from tests.functional.processes.deployment import as_text
from tests.functional.servers.deployed_cloud import DeployedCloud


def cloud(tmp_path: Path, **options: dict[str, Any]) -> DeployedCloud:
    """What `DeployedCloud` knows of the configuration of a cloud of 2 cells with 2 hosts each."""
    file = tmp_path / "common.conf"
    lines = []
    for group, values in options.items():
        lines += [f"[{group}]", *(f"{name} = {as_text(name, value)}" for name, value in values.items())]
    file.write_text("\n".join(lines) + "\n")
    found = object.__new__(DeployedCloud)
    vars(found).update(
        conf=new_config(config_files=[str(file)]),
        homes={f"{cell}-host{number}": cell for cell in ("cell1", "cell2") for number in (1, 2)},
        configuration=[file],
    )
    return found


def is_wanted(found: DeployedCloud, **wanted: Any) -> bool:
    try:
        found.check(wanted)
    except pytest.skip.Exception:
        return False
    return True


@pytest.mark.parametrize(
    ("wanted", "found", "runs"),
    [(0.3, 2.0, True), (2.0, 2.0, True), (2.5, 2.0, False), (0.3, 30.0, False)],
    ids=["sooner, and it can wait", "as it is", "later", "sooner, and it can't wait"],
)
def test_what_is_to_be_soon_may_take_longer_here(tmp_path: Path, wanted: float, found: float, runs: bool) -> None:
    there = cloud(tmp_path, moves={"lease": found})
    assert is_wanted(there, overrides={"moves": {"lease": wanted}}) is runs


def test_other_options_must_be_as_they_are_wanted(tmp_path: Path) -> None:
    there = cloud(tmp_path, moves={"warm": "never"})
    assert is_wanted(there, overrides={"moves": {"warm": "never"}})
    assert not is_wanted(there, overrides={"moves": {"warm": "auto"}})
    assert not is_wanted(there, hosts_per_cell=3) and not is_wanted(there, something_else=True)


def test_files_of_configuration_are_compared_by_what_is_written(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.conf"
    wanted.write_text("[notifications]\nnotification_format = versioned\n")
    assert is_wanted(cloud(tmp_path, **VERSIONED), config_files=[str(wanted)])
    assert not is_wanted(cloud(tmp_path), config_files=[str(wanted)])


def test_policies_are_compared_by_their_rules(tmp_path: Path) -> None:
    mine, same, other = (tmp_path / name for name in ("mine.yaml", "same.yaml", "other.yaml"))
    mine.write_text("# No rule.\n{}\n")
    same.write_text("{}\n")
    other.write_text('"compute:delete": "!"\n')
    there = cloud(tmp_path, oslo_policy={"policy_file": str(mine)})
    assert is_wanted(there, policy_file=str(same))
    assert not is_wanted(there, policy_file=str(other))
    assert not is_wanted(cloud(tmp_path), policy_file=str(same))


@pytest.mark.parametrize(
    ("fixtures", "marker", "path", "why"),
    [
        (("deployed", "cloud"), None, "tests/functional/servers/test_x.py", None),
        (("deployed", "monkeypatch"), None, "tests/functional/servers/test_x.py", of_one_process.INSIDE["monkeypatch"]),
        (("deployed",), "holds threads", "tests/functional/servers/test_x.py", "holds threads"),
        ((), None, "tests/functional/known_bugs/test_x.py", of_one_process.OWN_CLOUD),
        ((), None, "tests/unit/test_x.py", None),
    ],
)
def test_tests_of_one_process_are_known(
    fixtures: tuple[str, ...], marker: str | None, path: str, why: str | None
) -> None:
    root = Path("/somewhere")
    item: Any = SimpleNamespace(
        fixturenames=fixtures,
        path=root / path,
        config=SimpleNamespace(rootpath=root),
        get_closest_marker=lambda _name: SimpleNamespace(args=(marker,)) if marker else None,
    )
    assert of_one_process.why(item) == why
