"""What a command says when its service is ready."""

from __future__ import annotations

from collections.abc import Sequence

import click


def say_ready(what: str, notes: Sequence[str] = ()) -> None:
    """Prints that a service is ready, and ``notes`` beside it, on standard error: many operators read nothing else."""
    click.echo(f"ready: {what}")
    for note in notes:
        click.echo(f"warning: {note}", err=True)
