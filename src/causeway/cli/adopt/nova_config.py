"""The option that names a nova.conf."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

#: of commands that read all records
OF_THE_API = "The nova.conf of a role that has Nova's API database; may be given several times, later ones win."


def nova_config_option(help_text: str, *, required: bool = True, name: str = "nova_files") -> Callable[[Any], Any]:
    """``name``: of the command's argument with the files."""
    return click.option(
        "--nova-config",
        name,
        required=required,
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=help_text,
    )


__all__ = ["OF_THE_API", "nova_config_option"]
