"""Commands under another name than the one that is shown."""

from __future__ import annotations

import copy

import click


def hidden(command: click.Command) -> click.Command:
    """The same command, which works and is not listed."""
    alias = copy.copy(command)
    alias.hidden = True
    return alias
