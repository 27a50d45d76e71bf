"""``python -m tests.integration.clients [--beside] [--suite NAME] [--regex R] [--directory D]``.

Status 0 only if every test that was run passed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import click

from tests.functional.processes.rabbit import why_not
from tests.integration.clients.cloud import PRIVATE, cloud, cloud_beside
from tests.integration.real_services.machine import VENV as SERVICES

HERE = Path(__file__).parent
BIN = HERE.parents[2] / ".venv-clients/bin"
EXCLUSIONS = HERE / "exclusions.txt"
# suite -> its package, and which of its modules are of the Compute API
SUITES = {
    "openstacksdk": ("openstack/tests/functional", r"\.compute\.|\.cloud\.test_(compute|inventory|meta)$"),
    "openstack": ("openstackclient/tests/functional", r"\.compute\."),
    "nova": ("novaclient/tests/functional", ""),
}
# Seconds: for all of a suite.
PATIENCE = 3600.0


def environment(clouds: Path, directory: Path) -> dict[str, str]:
    """Without the caller's: no cloud but this one is ever touched."""
    return {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "OS_CLIENT_CONFIG_FILE": str(clouds),
        "OS_NOVACLIENT_EXEC_DIR": str(BIN),
        "OS_NOVACLIENT_NETWORK": PRIVATE,
        "OS_TEST_TIMEOUT": "300",
        "PYTHONWARNINGS": "ignore",
        "TOX_ENV_DIR": str(BIN.parent),
    }


def run(suite: str, regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """Runs a suite; what its tests say goes to standard output, and the counts to ``json_file``."""
    package, wanted = SUITES[suite]
    given = environment(clouds, directory)
    (site,) = BIN.parent.glob("lib/python*/site-packages")
    files = sorted(file.relative_to(site).with_suffix("") for file in (site / package).rglob("test_*.py"))
    modules = [name for name in (".".join(file.parts) for file in files) if re.search(wanted, name)]
    listed = subprocess.run(
        [BIN / "python", "-m", "testtools.run", "--list", *modules],
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
            [BIN / "python", "-m", "subunit.run", "--load-list", list_of_tests, *modules],
            env=given, cwd=clouds.parent, stdout=subprocess.PIPE, stderr=said,
        )  # fmt: skip
        counts = [json_file.absolute()] if json_file is not None else []
        report = subprocess.Popen(
            [BIN / "python", HERE.parent / "subunit_report.py", EXCLUSIONS, all_tests, *counts],
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


def why_not_beside() -> str | None:
    """Why there can be no real services here; None if there can."""
    if not (SERVICES / "bin/neutron-rpc-server").exists():
        return "the real services are not installed: scripts/install-services.sh does that"
    if os.geteuid() != 0:
        return "the volume service mounts shares: it needs root"
    return why_not()


@click.command()
@click.option("--suite", "suites", type=click.Choice(list(SUITES)), multiple=True, help="Only these; all by default.")
@click.option("--regex", default="", help="Which tests of them.")
@click.option(
    "--beside", is_flag=True, help="Every role a process, beside the real services, instead of `causeway up`."
)
@click.option("--directory", type=click.Path(path_type=Path), help="Where everything is and stays; a new one.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Add the counts to this file, a line each.")
def main(suites: tuple[str, ...], regex: str, beside: bool, directory: Path | None, json_file: Path | None) -> None:
    """The functional tests of three clients against a cloud of ``causeway up``, or one beside the real services."""
    reason = None if (BIN / "python").exists() else "the clients are not installed: make clients does that"
    if beside and reason is None:
        reason = why_not_beside()
    if reason is not None:
        raise click.ClickException(reason)
    make: Callable[[Path], AbstractContextManager[Path]] = cloud_beside if beside else cloud
    with ExitStack() as opened:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="causeway-clients-", ignore_cleanup_errors=True)
            directory = Path(opened.enter_context(temporary))
        else:
            directory.mkdir(parents=True)
        statuses = {}
        for suite in suites or SUITES:
            click.echo(f"\n{suite}:")
            # Each has a cloud of its own: some of their tests leave servers, and others count them.
            own = directory.absolute() / suite
            own.mkdir()
            with make(own) as clouds:
                statuses[suite] = run(suite, regex, clouds, own, json_file)
    sys.exit(any(statuses.values()))


main()
