"""`causeway adopt import`, as operators type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from tests.unit.adopt.causeway_databases import our_databases
from tests.unit.adopt.nova_cloud import ROWS, NovaOnDisk


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    """No server that is imported: no network service is asked."""
    made = NovaOnDisk(tmp_path)
    for cell in ("cell0", "cell1", "cell2"):
        made.execute(cell, "DELETE FROM instances WHERE vm_state NOT IN ('resized', 'building')")
    return made


def run(nova: NovaOnDisk, *more: str) -> Result:
    conf = nova.folder / "causeway.conf"
    conf.write_text(f"[api_database]\nconnection = sqlite:///{nova.folder}/api.sqlite\n")
    return CliRunner().invoke(cli, ["adopt", "import", f"--nova-config={nova.conf}", f"--config-file={conf}", *more])


def test_what_was_left_out_is_named_and_the_exit_status_says_so(nova: NovaOnDisk, tmp_path: Path) -> None:
    with our_databases(tmp_path):
        first, second = run(nova), run(nova, "--json")
    assert first.exit_code == second.exit_code == 2
    assert "(verify): its resize waits for confirm or revert: do either in Nova" in first.output
    answer = json.loads(second.stdout)
    assert answer["unchanged"] is True
    assert answer["kinds"]["flavor"]["read"] == len(ROWS["api"]["flavors"])
    assert [each["name"] for each in answer["left_out"]] == ["verify"]


def test_an_import_of_everything_ends_with_status_0(nova: NovaOnDisk, tmp_path: Path) -> None:
    nova.execute("cell1", "DELETE FROM instances")
    with our_databases(tmp_path):
        first = run(nova)
        assert first.exit_code == 0, first.output
        assert "Nothing had changed since the last import." in run(nova).output


def test_a_nova_conf_of_a_compute_is_refused_with_what_is_needed(nova: NovaOnDisk, tmp_path: Path) -> None:
    nova.conf.write_text("[DEFAULT]\nhost = host1\n")
    with our_databases(tmp_path):
        result = run(nova)
    assert result.exit_code == 1
    assert "give the nova.conf of a role that has it, as the API's" in result.output
