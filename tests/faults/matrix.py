"""The matrices of faults: each point on the way of each operation, and what becomes of the server.

``python -m tests.faults.matrix [--action ACTION] [--flow NAME] [--sample N] [--json FILE] [--driver libvirt]
[--shared-storage]`` runs them and prints the table. With libvirt there are real guests in QEMU, and what crashes is the process
of everything else: before, in and after each step of moves across cells; and hypervisors and networks meet their accidents, see
`moves.real_accidents`.

``--of operations`` runs everything else that takes long on a server (create, delete, shelve, ...), by the actions that are
there for them. See `operations.matrix`.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click
from rich.console import Console

from tests.faults.moves import matrix as moves
from tests.faults.operations import matrix as operations
from tests.faults.reporting import Wanted


@click.command()
@click.option("--of", "what", type=click.Choice(["moves", "operations"]), default="moves")
@click.option("--action", "actions", multiple=True, type=click.Choice(moves.EVERY_ACTION), default=moves.EVERY_ACTION)
@click.option("--flow", default="", help="Only operations whose name has this in it.")
@click.option("--point", default="", help="Only points whose name has this in it.")
@click.option("--sample", "count", type=int, help="So many points of each operation.")
@click.option(
    "--driver",
    type=click.Choice(["simulated", "libvirt"]),
    default="simulated",
    help="libvirt: real guests, crashes and real accidents.",
)
@click.option("--shared-storage", "stores", flag_value="one", default="", help="All hosts keep disks in one store.")
@click.option(
    "--storage-per-cell", "stores", flag_value="per cell", help="The hosts of each cell keep disks in one store."
)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Where to write every case and the counts, too.")
@click.option("--resume", is_flag=True, help="Run only what had not recovered by what the file of --json says.")
def main(
    what: str,
    actions: tuple[str, ...],
    flow: str,
    point: str,
    count: int | None,
    driver: str,
    stores: str,
    file: Path | None,
    resume: bool,
) -> None:
    """Runs the matrix and prints what came of it; exit status 1 if a server was lost or something leaked."""
    # Every fault is in the log twice and more; what came of them is in the table.
    logging.basicConfig(level=logging.CRITICAL)
    matrix = moves if what == "moves" else operations
    wanted = Wanted(actions, flow, point, count, driver, file, resume, stores)
    sys.exit(matrix.run_and_report(Console(width=150), wanted))


if __name__ == "__main__":
    main()
