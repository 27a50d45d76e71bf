"""``python -m tests.integration.clients [--beside] [--suite NAME] [--regex R] [--directory D]``.

Status 0 only if every test that was run passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from tests.functional.processes.rabbit import why_not
from tests.integration.clients import ansible, heat, horizon, libcloud, rally, unmodified
from tests.integration.clients.cloud import cloud, cloud_beside
from tests.integration.clients.tools import Tool
from tests.integration.real_services.machine import VENV as SERVICES


@dataclass(frozen=True)
class Suite:
    """``run``: gets which of its cases, the clouds.yaml, a folder, and the file for the counts; returns a status."""

    tool: Tool
    run: Callable[[str, Path, Path, Path | None], int]


SUITES = {
    **{name: Suite(unmodified.TOOL, partial(unmodified.run, name)) for name in unmodified.SUITES},
    "ansible": Suite(ansible.TOOL, ansible.run),
    "libcloud": Suite(libcloud.TOOL, libcloud.run),
    "horizon": Suite(horizon.TOOL, horizon.run),
    "rally": Suite(rally.TOOL, rally.run),
    "heat": Suite(heat.TOOL, heat.run),
}


def why_not_beside() -> str | None:
    """Why there can be no real services here; None if there can."""
    if not (SERVICES / "bin/neutron-rpc-server").exists():
        return "the real services are not installed: scripts/install-services.sh does that"
    if os.geteuid() != 0:
        return "the volume service mounts shares: it needs root"
    return why_not()


@click.command()
@click.option(
    "--suite", "suites", type=click.Choice(list(SUITES)), multiple=True,
    help="Only these; all by default, or with --beside the functional tests of the clients themselves.",
)  # fmt: skip
@click.option("--regex", default="", help="Which tests of them.")
@click.option(
    "--beside", is_flag=True, help="Every role a process, beside the real services, instead of `causeway up`."
)
@click.option("--directory", type=click.Path(path_type=Path), help="Where everything is and stays; a new one.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Add the counts to this file, a line each.")
def main(suites: tuple[str, ...], regex: str, beside: bool, directory: Path | None, json_file: Path | None) -> None:
    """Other people's clients against a cloud of ``causeway up``, or one beside the real services."""
    wanted = suites or tuple(unmodified.SUITES if beside else SUITES)
    if beside and (reason := why_not_beside()) is not None:
        raise click.ClickException(reason)
    try:
        for tool in dict.fromkeys(SUITES[suite].tool for suite in wanted):
            tool.install()
    except subprocess.CalledProcessError:
        raise click.ClickException("a client could not be installed; see above") from None
    make: Callable[[Path], AbstractContextManager[Path]] = cloud_beside if beside else cloud
    with ExitStack() as opened:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="causeway-clients-", ignore_cleanup_errors=True)
            directory = Path(opened.enter_context(temporary))
        else:
            directory.mkdir(parents=True)
        statuses = {}
        for suite in wanted:
            click.echo(f"\n{suite}:")
            # Each has a cloud of its own: some of their tests leave servers, and others count them.
            own = directory.absolute() / suite
            own.mkdir()
            with make(own) as clouds:
                statuses[suite] = SUITES[suite].run(regex, clouds, own, json_file)
    sys.exit(any(statuses.values()))


main()
