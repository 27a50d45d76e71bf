"""The audit of dependencies: an answer of a database that knows nothing is not a good one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.scripts.loaded import load

CVE = {"id": "PYSEC-1", "fix_versions": ["3.0"], "aliases": [], "description": ""}
KNOWN = {"name": "requests", "version": "2.19.0", "vulns": [CVE]}
FalsePipAudit = Callable[..., str]


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load("audit_dependencies")


@pytest.fixture
def pip_audit(tmp_path: Path) -> FalsePipAudit:
    def make(*, vulnerable: Any, ours: Any) -> str:
        """A program that answers as pip-audit does: for the version that has vulnerabilities, then for our packages."""
        program = tmp_path / "pip-audit"
        answers = {"vulnerable": {"dependencies": vulnerable}, "ours": {"dependencies": ours}}
        (tmp_path / "answers.json").write_text(json.dumps(answers))
        program.write_text(
            f"#!{sys.executable}\nimport json, sys\nanswers = json.load(open({str(tmp_path / 'answers.json')!r}))\n"
            "which = 'ours' if sys.argv[-1].endswith('constraints.txt') else 'vulnerable'\n"
            "if answers[which]['dependencies'] is None:\n    sys.exit('ConnectionError: no such host')\n"
            "print(json.dumps(answers[which]))\n"
            "sys.exit(any(each.get('vulns') for each in answers[which]['dependencies']))\n"
        )
        program.chmod(0o755)
        return str(program)

    return make


def test_packages_without_known_vulnerabilities_pass(audit: ModuleType, pip_audit: FalsePipAudit) -> None:
    ours = [{"name": "falcon", "version": "4.0", "vulns": []}]
    assert audit.main([pip_audit(vulnerable=[KNOWN], ours=ours)]) == 0


def test_a_vulnerable_package_is_named(
    audit: ModuleType, pip_audit: FalsePipAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [{"name": "falcon", "version": "4.0", "vulns": [CVE]}]
    assert audit.main([pip_audit(vulnerable=[KNOWN], ours=ours)]) == 1
    assert "falcon 4.0: PYSEC-1, fixed in 3.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("vulnerable", "says"),
    [
        (None, "no such host"),
        ([{"name": "requests", "skip_reason": "Dependency not found on PyPI"}], "knows no vulnerability of requests"),
        ([{"name": "requests", "version": "2.19.0", "vulns": []}], "knows no vulnerability of requests"),
    ],
)
def test_a_database_that_is_unreachable_is_no_good_answer(
    audit: ModuleType, pip_audit: FalsePipAudit, capsys: pytest.CaptureFixture[str], vulnerable: Any, says: str
) -> None:
    assert audit.main([pip_audit(vulnerable=vulnerable, ours=[])]) == 3
    said = capsys.readouterr().err
    assert "nothing was audited" in said and says in said


def test_packages_that_it_does_not_know_are_named(
    audit: ModuleType, pip_audit: FalsePipAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [{"name": "falcon", "version": "4.0", "vulns": []}, {"name": "new", "skip_reason": "not found"}]
    assert audit.main([pip_audit(vulnerable=[KNOWN], ours=ours)]) == 3
    assert "new: not audited: not found" in capsys.readouterr().err
