"""``causeway cloud audit``: the command of ``openstack`` under the same name. `causeway audit` is short for it."""

from __future__ import annotations

import click

from causeway.cli.audit import audit


@click.group()
def cloud() -> None:
    """Look at the whole cloud."""


cloud.add_command(audit)
