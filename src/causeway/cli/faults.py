"""``causeway faults``: the points where faults can be injected."""

from __future__ import annotations

import click


@click.group()
def faults() -> None:
    """Fault injection (off unless [fault_injection] enabled is set)."""


@faults.command("list")
def list_points() -> None:
    """Print all points, one a line. What happens at them is set in the file that [fault_injection] file names."""
    from causeway.faults.points import every_point

    for point in every_point():
        click.echo(point)
