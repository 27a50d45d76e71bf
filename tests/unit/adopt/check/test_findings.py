"""What a check finds in Nova's records: nothing that blocks in a clean cloud, and what one changed row makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.adopt.check import CODES, Kind, Verdict
from tests.unit.adopt.check.cases import CASES, Case
from tests.unit.adopt.check.clean_cloud import ACTIVE, NODES, RESCUED, SUSPENDED, CleanCloud, codes, instance


def test_in_a_clean_cloud_nothing_blocks(tmp_path: Path) -> None:
    report = CleanCloud(tmp_path).check()
    assert [finding for finding in report.findings if finding.verdict is Verdict.BLOCKS] == []
    assert not report.is_blocked
    counts = report.counts()
    assert counts[Kind.HOST] == {Verdict.AS_IT_IS: len(NODES)}
    assert counts[Kind.SERVER] == {Verdict.AS_IT_IS: 14, Verdict.DIFFERS: 2}


def test_servers_that_differ_in_a_clean_cloud_are_the_suspended_and_the_rescued_one(tmp_path: Path) -> None:
    report = CleanCloud(tmp_path).check()
    found = {each.subject.id: each.code for each in report.findings if each.subject.kind is Kind.SERVER}
    assert found == {SUSPENDED: "suspended", RESCUED: "rescued"}


@pytest.mark.parametrize("case", CASES, ids=[f"{each.code}-{number}" for number, each in enumerate(CASES)])
def test_one_changed_row_is_found(tmp_path: Path, case: Case) -> None:
    report = CleanCloud(tmp_path, case.change).check()
    assert case.code in codes(report, case.subject)
    of_it = [each for each in report.findings if each.code == case.code]
    assert {each.verdict for each in of_it} == {CODES[case.code].verdict}
    assert {each.subject.kind for each in of_it} == {CODES[case.code].kind}
    assert all(each.what.endswith(".") or each.what[0].isdigit() for each in of_it)


def test_nothing_is_written_by_a_check(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    before = cloud.nova.content()
    cloud.check()
    assert cloud.nova.content() == before


@pytest.mark.parametrize("host_state", ["stopped", "paused", "error", "shelved", "soft-delete"])
def test_servers_at_rest_go_as_they_are(tmp_path: Path, host_state: str) -> None:
    report = CleanCloud(tmp_path, lambda content: instance(content).update(vm_state=host_state)).check()
    assert codes(report, ACTIVE) == set()


@pytest.mark.parametrize("kind", ["raw", "flat", "lvm", "rbd", "ploop"])
def test_local_disks_that_are_no_qcow2_files_block(tmp_path: Path, kind: str) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.compute_conf.write_text(f"[libvirt]\nimages_type = {kind}\n")
    assert "image_type" in codes(cloud.check(), ACTIVE)


def test_without_overlays_the_default_images_are_flat_files(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.compute_conf.write_text("[DEFAULT]\nuse_cow_images = False\n")
    assert "image_type" in codes(cloud.check(), ACTIVE)


def test_an_older_release_without_newer_columns_and_tables_is_checked(tmp_path: Path) -> None:
    report = CleanCloud(tmp_path, release=24).check()
    assert not report.is_blocked
    assert len([key for key in report.judged if key[0] is Kind.SERVER]) == 16


def test_servers_of_another_host_are_not_blocked_by_one_that_is_down(tmp_path: Path) -> None:
    def down(content: dict[str, dict[str, list[dict[str, object]]]]) -> None:
        next(r for r in content["cell1"]["services"] if r["host"] == "cell1-host1")["forced_down"] = 1

    report = CleanCloud(tmp_path, down).check()
    blocked = {each.subject.id for each in report.findings if each.verdict is Verdict.BLOCKS}
    assert blocked == {"cell1-host1"}
