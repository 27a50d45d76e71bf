"""The group of commands."""

from __future__ import annotations

import click


@click.group()
def adopt() -> None:
    """Take over a cloud that runs Nova."""


__all__ = ["adopt"]
