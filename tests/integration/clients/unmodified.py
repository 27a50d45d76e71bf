"""Functional tests that clients bring along, run as they are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.integration.clients.cloud import PRIVATE
from tests.integration.clients.tools import Tool

HERE = Path(__file__).parent
EXCLUSIONS = HERE / "exclusions.txt"
TOOL = Tool(
    "clients",
    (
        *("openstacksdk", "python-openstackclient", "python-novaclient"),
        *("tempest", "oslotest", "requests-mock", "ddt"),
    ),
)
# suite -> its package, and which of its modules are of the Compute API
SUITES = {
    "openstacksdk": ("openstack/tests/functional", r"\.compute\.|\.cloud\.test_(compute|inventory|meta)$"),
    "openstack": ("openstackclient/tests/functional", r"\.compute\."),
    "nova": ("novaclient/tests/functional", ""),
}
# Seconds: for all of a suite.
PATIENCE = 3600.0


def _environment(clouds: Path, directory: Path) -> dict[str, str]:
    return TOOL.environment(clouds, directory) | {
        "OS_NOVACLIENT_EXEC_DIR": str(TOOL.bin),
        "OS_NOVACLIENT_NETWORK": PRIVATE,
        "OS_TEST_TIMEOUT": "300",
        "TOX_ENV_DIR": str(TOOL.bin.parent),
    }


def run(suite: str, regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """Runs a suite; what its tests say goes to standard output, and the counts to ``json_file``."""
    package, wanted = SUITES[suite]
    given = _environment(clouds, directory)
    (site,) = TOOL.bin.parent.glob("lib/python*/site-packages")
    files = sorted(file.relative_to(site).with_suffix("") for file in (site / package).rglob("test_*.py"))
    modules = [name for name in (".".join(file.parts) for file in files) if re.search(wanted, name)]
    listed = subprocess.run(
        [TOOL.bin / "python", "-m", "testtools.run", "--list", *modules],
        env=given, cwd=clouds.parent, check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    tests = [name for name in listed.stdout.split() if re.search(regex, name)]
    named = [line.partition("#")[0].strip() for line in EXCLUSIONS.read_text().splitlines()]
    excluded = [re.compile(name) for name in named if name]
    all_tests, list_of_tests = directory / f"{suite}.tests", directory / f"{suite}.run"
    all_tests.write_text("\n".join(tests))
    list_of_tests.write_text("\n".join(name for name in tests if not any(each.search(name) for each in excluded)))
    with (directory / f"{suite}.errors").open("wb") as said:
        testing = subprocess.Popen(
            [TOOL.bin / "python", "-m", "subunit.run", "--load-list", list_of_tests, *modules],
            env=given, cwd=clouds.parent, stdout=subprocess.PIPE, stderr=said,
        )  # fmt: skip
        counts = [json_file.absolute()] if json_file is not None else []
        report = subprocess.Popen(
            [TOOL.bin / "python", HERE.parent / "subunit_report.py", EXCLUSIONS, all_tests, *counts],
            env=given,
            stdin=testing.stdout,
        )
        assert testing.stdout is not None
        testing.stdout.close()
        try:
            return report.wait(PATIENCE)
        finally:
            for process in (testing, report):
                process.terminate()
                process.wait(30)
