"""What an import leaves out, a check has said before; and what a check lets pass is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.adopt.check import Kind, Report, Verdict
from causeway.adopt.importing import import_cloud
from causeway.adopt.nova import NovaCloud
from tests.unit.adopt.causeway_databases import our_databases
from tests.unit.adopt.check.cases import CASES, Case
from tests.unit.adopt.check.clean_cloud import CleanCloud

# Those that an import looks at, too.
_CODES = {
    "task", "building", "verify_resize", "migration_in_progress", "state_unknown", "disk_encrypted", "vgpu", "pmem",
    "mapping_missing", "mapping_cell", "duplicate", "hidden", "record_unknown", "record_missing", "not_imported",
}  # fmt: skip
_OF_IMPORTS = [each for each in CASES if each.code in _CODES]


def blocked(report: Report) -> set[str]:
    return {
        each.subject.id
        for each in report.findings
        if each.verdict is Verdict.BLOCKS and each.subject.kind is Kind.SERVER
    }


def imported(cloud: CleanCloud, folder: Path) -> tuple[int, set[str]]:
    """How many servers were imported, and those that were left out."""
    with our_databases(folder) as ours, NovaCloud([cloud.nova.conf]) as nova:
        report = import_cloud(nova, ours.api, ours.cells, lambda _servers: None)
    return report.of("server").written, {each.key for each in report.left_out if each.kind == "server"}


def test_all_servers_of_a_clean_cloud_are_imported(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    assert not cloud.check().is_blocked
    assert imported(cloud, tmp_path) == (16, set())


@pytest.mark.parametrize("case", _OF_IMPORTS, ids=[f"{each.code}-{number}" for number, each in enumerate(_OF_IMPORTS)])
def test_a_server_that_an_import_leaves_out_is_blocked(tmp_path: Path, case: Case) -> None:
    cloud = CleanCloud(tmp_path, case.change)
    _written, left_out = imported(cloud, tmp_path)
    assert left_out - blocked(cloud.check()) == set()
