"""What a command does when its service is ready."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import click


def say_ready(what: str, notes: Sequence[str] = ()) -> None:
    """Prints that a service is ready, and ``notes`` beside it, on standard error: many operators read nothing else."""
    freeze_what_stays()
    click.echo(f"ready: {what}")
    for note in notes:
        click.echo(f"warning: {note}", err=True)


def freeze_what_stays() -> None:
    """Takes what a process has loaded for its start out of later collections of garbage: it stays until the process ends.

    These are some hundred thousand objects: to look at all of them, which a full collection does, takes more than 100 ms, in
    which no request is served.
    """
    gc.collect()
    gc.freeze()
