"""``python -m tests.integration.tempest [--regex R] [--database D] [--concurrency N] [--one-cell] [--guests] [--directory D]``.

Status 0 only if every test that was run passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from tests.functional.processes.rabbit import why_not
from tests.integration.real_services.machine import VENV as SERVICES
from tests.integration.tempest import settings
from tests.integration.tempest.guests import GuestsBehindRouters, guests, missing
from tests.integration.tempest.stack import CELLS, ONE_CELL, Cloud, stack

HERE = Path(__file__).parent
BIN = HERE.parents[2] / ".venv-tempest/bin"
EXCLUSIONS, LOGIN_EXCLUSIONS = HERE / "exclusions.txt", HERE / "exclusions-guests.txt"
# All of the Compute API, and the scenarios that do it without logging in to guests.
TESTS = r"^tempest\.(api\.compute|scenario)\."
# With real guests: what logs in to them, or looks at their screens.
LOGIN_TESTS = (
    r"^tempest\.scenario\.test_(minimum_basic|network_advanced_server_ops|network_basic_ops|server_advanced_ops|server_basic_ops"
    r"|shelve_instance|snapshot_pattern)\.|\.servers\.test_novnc\.|\.ServerActionsV293TestJSON\."
)


def run(
    conf: Path, directory: Path, regex: str, concurrency: int, exclusions: Path, json_file: Path | None = None
) -> int:
    """Runs the tests; what they say goes to standard output, and the counts to ``json_file``."""
    workspace = directory / "workspace"
    environment = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "PYTHONWARNINGS": "ignore",
    }
    if not workspace.exists():
        subprocess.run(
            [BIN / "tempest", "init", workspace], env=environment, check=True, capture_output=True, timeout=60
        )
    (workspace / "etc/tempest.conf").write_text(conf.read_text())
    command: list[str | Path] = [
        *(BIN / "tempest", "run", "--subunit", "--regex", regex),
        *("--exclude-list", exclusions, "--concurrency", str(concurrency)),
    ]
    listed = subprocess.run(
        [BIN / "tempest", "run", "--list-tests", "--regex", regex],
        env=environment, cwd=workspace, check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    tests_file = directory / "tests.txt"
    tests_file.write_text("\n".join(line for line in listed.stdout.split() if line.startswith("tempest.")))
    counts = [json_file.absolute()] if json_file is not None else []
    with (directory / "tempest.errors").open("wb") as said:
        tests = subprocess.Popen(command, env=environment, cwd=workspace, stdout=subprocess.PIPE, stderr=said)
        report = subprocess.Popen(
            [BIN / "python", HERE.parent / "subunit_report.py", exclusions, tests_file, *counts],
            env=environment,
            stdin=tests.stdout,
        )
        assert tests.stdout is not None
        tests.stdout.close()
        try:
            status = report.wait()
            tests.wait(60)
        finally:
            for process in (tests, report):
                if process.poll() is None:
                    process.terminate()
                    process.wait(30)
    if tests.returncode not in (0, 1):
        sys.stderr.write((directory / "tempest.errors").read_text(errors="replace")[-3000:])
        return 1
    return status


@click.command()
@click.option("--regex", help="Which tests.")
@click.option("--database", default="postgresql", type=click.Choice(["postgresql", "mariadb"]))
@click.option("--concurrency", type=int, help="How many tests at once; with real guests 1, else 3.")
@click.option("--one-cell", is_flag=True, help="All hosts in one cell: live migrations may then name any of them.")
@click.option(
    "--guests", "real", is_flag=True, help="Real guests of libvirt behind routers, for scenarios that log in."
)
@click.option("--directory", type=click.Path(path_type=Path), help="Where everything is and stays; a new one.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Add the counts to this file, on a line.")
def main(
    regex: str | None,
    database: str,
    concurrency: int | None,
    one_cell: bool,
    real: bool,
    directory: Path | None,
    json_file: Path | None,
) -> None:
    """Tempest against a deployment that is made for it."""
    reason = why_not()
    if not (SERVICES / "bin/neutron-rpc-server").exists() or not (BIN / "tempest").exists():
        reason = "the real services or Tempest are not installed: make tempest does that"
    elif os.geteuid() != 0:
        reason = "the volume service mounts shares: it needs root"
    elif real:
        reason = missing()
    if reason is not None:
        raise click.ClickException(reason)
    with ExitStack() as opened:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="causeway-tempest-", ignore_cleanup_errors=True)
            directory = Path(opened.enter_context(temporary))
        else:
            directory.mkdir(parents=True)
        cloud: Cloud | GuestsBehindRouters
        if real:
            cloud = opened.enter_context(guests(directory, database))
        else:
            cloud = opened.enter_context(stack(directory, database, ONE_CELL if one_cell else CELLS))
        conf = settings.prepare(cloud, directory)
        click.echo(f"ready: {cloud.api_url}, {conf}; the tests run now")
        tests, at_once, exclusions = (LOGIN_TESTS, 1, LOGIN_EXCLUSIONS) if real else (TESTS, 3, EXCLUSIONS)
        status = run(conf, directory, regex or tests, concurrency or at_once, exclusions, json_file)
    sys.exit(status)


main()
