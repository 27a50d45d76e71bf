"""``causeway server move explain``: the command of ``openstack`` under the same name. `causeway explain` is short for it."""

from __future__ import annotations

import click

from causeway.cli.explain import explain


@click.group()
def server() -> None:
    """Say where servers could be moved to."""


@server.group()
def move() -> None:
    """Say where servers could be moved to."""


move.add_command(explain)
