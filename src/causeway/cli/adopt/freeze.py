"""``causeway adopt freeze``: Nova's API refuses changes, for the last import."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import click
import yaml

from causeway.cli import extras, processes
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import OF_THE_API, nova_config_option


@adopt.command()
@nova_config_option(OF_THE_API)
@click.option(
    "--policy-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Written here, where Nova's API reads it, e.g. /etc/nova/policy.d/causeway-freeze.yaml. Without it: printed only.",
)
@click.option("--lift", is_flag=True, help="Delete the file: Nova accepts changes again.")
@click.option(
    "--quiet", default=60.0, show_default=True, type=click.FloatRange(1), help="Seconds without a change in Nova."
)
@click.option(
    "--timeout", default=1800.0, show_default=True, type=click.FloatRange(1), help="Seconds to wait for that."
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def freeze(
    nova_files: tuple[Path, ...],
    policy_file: Path | None,
    lift: bool,
    quiet: float,
    timeout: float,
    as_json: bool,
) -> None:
    """Let Nova's API refuse changes, and wait until what runs there has ended and no record changes any more.

    Users get 403 for changes; they can still see their servers and consoles. Copy the file to every machine with an API of
    Nova's (Nova reads it within seconds, without a restart), or let the load balancer answer. Guests run on.

    Exit status: 0 Nova is quiet (or accepts changes again), 1 it is not.
    """
    extras.require("database", "`causeway adopt freeze`")
    from causeway.adopt import freezing
    from causeway.adopt.nova import NovaCloud

    with processes.failures_reported():
        if lift:
            if policy_file is None:
                raise click.UsageError("--lift needs the --policy-file.")
            was_there = freezing.lift(policy_file)
            click.echo(f"{policy_file}: {'deleted' if was_there else 'it was not there'}. Delete its copies too.")
            return
        if policy_file is None:
            click.echo(yaml.safe_dump(freezing.denied_rules(), sort_keys=True))
            return
        freezing.write_policy(policy_file)

        def report(running: Counter[str]) -> None:
            said = ", ".join(f"{number} {what}" for what, number in running.items()) or "nothing is under way"
            click.echo(f"{time.strftime('%H:%M:%S')} {said}", err=True)

        with NovaCloud(nova_files) as nova:
            is_quiet = freezing.wait_until_quiet(
                nova,
                seconds=quiet,
                timeout=timeout,
                wait=threading.Event().wait,
                now=time.monotonic,
                report=report,
            )
            left = freezing.under_way(nova)
    if as_json:
        click.echo(json.dumps({"quiet": is_quiet, "under_way": left}, indent=2))
    elif is_quiet:
        click.echo(f"Nova is quiet: nothing has changed for {quiet:.0f} s. Import now, for the last time.")
    else:
        click.echo(f"Nova is not quiet after {timeout:.0f} s. Settle what is under way, or lift the freeze.")
    sys.exit(0 if is_quiet else 1)


__all__ = ["freeze"]
