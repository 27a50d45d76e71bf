"""``python -m tests.integration.tempest [--on simulated|guests] [--network N] [--regex R] [--database D] [--directory D]``.

Two deployments, one after the other: simulated hosts for the tests of the API, real guests for scenarios and whatever else
logs in. Status 0 only if every test that was run passed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from tests.functional.processes.rabbit import why_not
from tests.integration.real_services.guests import Networking
from tests.integration.real_services.machine import VENV as SERVICES
from tests.integration.tempest import ovn, settings
from tests.integration.tempest.guests import GuestsBehindRouters, guests, missing
from tests.integration.tempest.stack import CELLS, ONE_CELL, Cloud, stack

HERE = Path(__file__).parent
BIN = HERE.parents[2] / ".venv-tempest/bin"
# Tests of the API that log in to guests, look at their screens, or ask what they know of themselves.
_LOGIN = (
    r"\.test_(novnc|attach_interfaces|create_server|device_tagging)\.|\.ServerActionsV293TestJSON\."
    r"|\.test_stable_device_rescue_disk_ide|\.test_live_migration_serial_console"
)


@dataclass(frozen=True)
class Half:
    """The tests of one deployment: ``tests`` is a regular expression, ``at_once`` how many of them run at a time."""

    tests: str
    exclusions: Path
    at_once: int


HALVES = {
    "simulated": Half(rf"tempest\.api\.compute\.(?!.*({_LOGIN}))", HERE / "exclusions.txt", 3),
    "guests": Half(rf"tempest\.(scenario\.|api\.compute\..*({_LOGIN}))", HERE / "exclusions-guests.txt", 2),
}


def _workspace(directory: Path) -> tuple[Path, dict[str, str]]:
    """Tempest's working directory, and the environment of its commands."""
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
    return workspace, environment


def list_tests(directory: Path, regex: str) -> Path | None:
    """A file that names the tests that match, one per line; None if no test does."""
    workspace, environment = _workspace(directory)
    listed = subprocess.run(
        [BIN / "tempest", "run", "--list-tests", "--regex", regex],
        env=environment, cwd=workspace, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    names = [line for line in listed.stdout.split() if line.startswith("tempest.")]
    file = directory / "tests.txt"
    file.write_text("\n".join(names))
    return file if names else None


def run(conf: Path, directory: Path, regex: str, concurrency: int, exclusions: Path, counts: Path) -> int:
    """Runs what `list_tests` named; reports to standard output, and adds the counts to the file ``counts``."""
    workspace, environment = _workspace(directory)
    (workspace / "etc/tempest.conf").write_text(conf.read_text())
    command: list[str | Path] = [
        *(BIN / "tempest", "run", "--subunit", "--regex", regex),
        *("--exclude-list", exclusions, "--concurrency", str(concurrency)),
    ]
    with (directory / "tempest.errors").open("wb") as said:
        tests = subprocess.Popen(command, env=environment, cwd=workspace, stdout=subprocess.PIPE, stderr=said)
        report = subprocess.Popen(
            [BIN / "python", HERE.parent / "subunit_report.py", exclusions, directory / "tests.txt", counts],
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


# Of the real guests.
NETWORKS = {"agents": (GuestsBehindRouters, Networking()), "ovn": (ovn.GuestsOnOvn, ovn.NETWORKING)}


def _why_not(halves: list[str], network: str) -> str | None:
    """Why these can't run here; None if they can."""
    if reason := why_not():
        return reason
    if not (SERVICES / "bin/neutron-rpc-server").exists() or not (BIN / "tempest").exists():
        return "the real services or Tempest are not installed: make tempest does that"
    if os.geteuid() != 0:
        return "the volume service mounts shares: it needs root"
    if "guests" not in halves:
        return None
    return missing() or (ovn.missing() if network == "ovn" else None)


def _total(counts: Path) -> str:
    halves = [json.loads(line) for line in counts.read_text().splitlines()]
    passed, failed = sum(half["passed"] for half in halves), sum(len(half["failed"]) for half in halves)
    skipped, excluded = (sum(sum(half[name].values()) for half in halves) for name in ("skipped", "excluded"))
    return f"in all: passed {passed}, failed {failed}, skipped {skipped}, excluded {excluded}"


@click.command()
@click.option("--on", "half", type=click.Choice(list(HALVES)), help="Only the tests of these hosts.")
@click.option("--regex", default="", help="Which of the tests.")
@click.option("--database", default="postgresql", type=click.Choice(["postgresql", "mariadb"]))
@click.option("--concurrency", type=int, help="How many tests at once; on simulated hosts 3, on real guests 2.")
@click.option("--network", type=click.Choice(list(NETWORKS)), default="agents", help="What Neutron has on real hosts.")
@click.option("--one-cell", is_flag=True, help="All simulated hosts in one cell: live migrations may name any of them.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where everything is and stays; a new one.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Add the counts to this file, a line per half."
)
def main(
    half: str | None,
    regex: str,
    database: str,
    concurrency: int | None,
    network: str,
    one_cell: bool,
    directory: Path | None,
    json_file: Path | None,
) -> None:
    """Tempest against deployments that are made for it."""
    names = [half] if half else list(HALVES)
    if reason := _why_not(names, network):
        raise click.ClickException(reason)
    with ExitStack() as opened:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="causeway-tempest-", ignore_cleanup_errors=True)
            directory = Path(opened.enter_context(temporary))
        else:
            directory.mkdir(parents=True)
        counts = (json_file or directory / "counts.json").absolute()
        statuses = []
        for name in names:
            tests, place = HALVES[name], directory / name
            place.mkdir()
            chosen = f"^(?=.*(?:{regex}))(?:{tests.tests})"
            if list_tests(place, chosen) is None:
                click.echo(f"{name}: no such test")
                continue
            cloud: Cloud | GuestsBehindRouters
            with ExitStack() as deployed:
                if name == "guests":
                    cloud = deployed.enter_context(guests(place, database, *NETWORKS[network]))
                else:
                    cloud = deployed.enter_context(stack(place, database, ONE_CELL if one_cell else CELLS))
                conf = settings.prepare(cloud, place)
                click.echo(f"{name}: ready at {cloud.api_url}, {conf}; the tests run now")
                statuses.append(run(conf, place, chosen, concurrency or tests.at_once, tests.exclusions, counts))
        if not statuses:
            raise click.ClickException(f"no test matches {regex}")
        click.echo(_total(counts))
    sys.exit(max(statuses))


main()
