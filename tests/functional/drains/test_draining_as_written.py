"""docs/draining.md, typed as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.as_written import PATIENCE, cloud_at, typed

DOCUMENT = Path(__file__).parents[3] / "docs" / "draining.md"


@pytest.mark.long
@pytest.mark.timeout(PATIENCE)
def test_a_cell_is_emptied_as_it_is_written(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    with cloud_at(tmp_path, "--hosts-per-cell", "2"):
        shown = typed("\n".join(blocks), tmp_path)
    assert "lack the aggregate property gen=1" in shown
    assert "asked to wait until" in shown
    assert "Cell cell1 is deleted." in shown
    left, _, listed = shown.partition("Cell cell1 is deleted.")
    assert "| cell2 " in listed and "| cell1 " not in listed
    servers = re.findall(r"^\| (web|database|archive|billing) +\| (\w+) +\| (\S+)", left, re.MULTILINE)
    assert sorted(servers)[-4:] and all(host.startswith("cell2") for _name, _status, host in servers)
    assert {(name, status) for name, status, _host in servers} == {
        ("web", "ACTIVE"),
        ("database", "ACTIVE"),
        ("archive", "SHUTOFF"),
        ("billing", "ACTIVE"),
    }
    assert "<svg" in (tmp_path / "report.html").read_text()
