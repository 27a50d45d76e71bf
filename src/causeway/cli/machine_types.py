"""``causeway manage libvirt``: the recorded machine types of servers. Options and exit statuses are nova-manage's."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import click
import sqlalchemy as sa

from causeway import errors
from causeway.cli import databases, processes
from causeway.model.instance import Instance
from causeway.model.machine_type import RECORDED, recorded
from causeway.model.states import SHELVED, VmState
from causeway.store import servers
from causeway.store.cell import instances, machine_types
from causeway.store.cells import Cells

NO_SERVER, NOT_RECORDED, WRONG_STATE, WRONG_CHANGE, UNSUPPORTED, SOME_UNSET = 2, 3, 3, 4, 5, 3
# States without a running guest, which would keep its old type.
_OFF = (VmState.STOPPED, *SHELVED)
_KNOWN = re.compile(r"(pc|q35|pc-q35|pc-i440fx|virt|microvm|pseries|powernv|s390-ccw-virtio|isapc)(-[a-z0-9._]+)*")
_VERSION = re.compile(r"-[0-9][0-9.]*$")
_ALIASES = {"pc": "pc-i440fx", "q35": "pc-q35"}


@click.group()
def libvirt() -> None:
    """Machine types of servers."""


@libvirt.command("get-machine-type")
@processes.config_file_option
@click.argument("instance_uuid")
def get_machine_type(config_files: tuple[Path, ...], instance_uuid: str) -> None:
    """Show the recorded machine type of a server.

    Exit status: 0 it is shown, 1 it failed, 2 there is no such server, 3 none is recorded.
    """
    with _server(config_files, instance_uuid) as (_cells, instance):
        found = recorded(instance.system_metadata)
    if found is None:
        click.echo(f"No machine type is recorded for server {instance_uuid}.", err=True)
        sys.exit(NOT_RECORDED)
    click.echo(found)


@libvirt.command("update-machine-type")
@processes.config_file_option
@click.argument("instance_uuid")
@click.argument("machine_type")
@click.option(
    "--force", is_flag=True, help="Also change it to another family of machines, whose devices the guest may not know."
)
def update_machine_type(config_files: tuple[Path, ...], instance_uuid: str, machine_type: str, force: bool) -> None:
    """Record another machine type for a server, which its guest has from its next start on.

    Exit status: 0 done, 1 it failed, 2 there is no such server, 3 it is neither stopped nor shelved, 4 that is another family of
    machines, 5 no such machine type is known.
    """
    with _server(config_files, instance_uuid) as (cells, instance):
        if not _KNOWN.fullmatch(machine_type):
            _refuse(f"No machine type {machine_type!r} is known.", UNSUPPORTED)
        if instance.vm_state not in _OFF:
            _refuse(f"Server {instance_uuid} is {instance.vm_state.value}: stop it first.", WRONG_STATE)
        former = recorded(instance.system_metadata)
        if former is not None and not force and _family(former) != _family(machine_type):
            _refuse(
                f"Server {instance_uuid} is of the type {former}: --force changes that to {machine_type}.", WRONG_CHANGE
            )

        def record(connection: sa.Connection) -> None:
            known = instances.get_in(connection, instance_uuid, with_tags=False).system_metadata
            instances.update_in(connection, instance_uuid, system_metadata=known | {RECORDED: machine_type})

        servers.change(cells, instance_uuid, cells.of_server(instance_uuid)[0].uuid, record)
    click.echo(f"Updated instance {instance_uuid} machine type from {former} to {machine_type}")


@libvirt.command("list-unset-machine-type")
@processes.config_file_option
@click.option("--cell-uuid", help="Only of this cell.")
def list_unset_machine_type(config_files: tuple[Path, ...], cell_uuid: str | None) -> None:
    """List the servers that have no recorded machine type: they have that of their image, or their host's default.

    Exit status: 0 there are none, 1 it failed, 2 there is no such cell, 3 there are some.
    """
    with processes.failures_reported(), ExitStack() as cleanup:
        _api, cells = databases.api_and_cells(processes.configuration(config_files), cleanup)
        wanted = [cell.uuid for cell in cells.mappings(cell0=False)] if cell_uuid is None else [cell_uuid]
        try:
            found = [uuid for cell in wanted for uuid in machine_types.unset(cells.database(cell))]
        except errors.NotFound as missing:
            _refuse(missing.message, NO_SERVER)
    for uuid in found:
        click.echo(uuid)
    sys.exit(SOME_UNSET if found else 0)


@contextmanager
def _server(config_files: tuple[Path, ...], uuid: str) -> Iterator[tuple[Cells, Instance]]:
    with processes.failures_reported(), ExitStack() as cleanup:
        _api, cells = databases.api_and_cells(processes.configuration(config_files), cleanup)
        try:
            _cell, database = cells.of_server(uuid)
            instance = instances.get(database, uuid, with_tags=False)
        except errors.ServerNotFound as missing:
            _refuse(missing.message, NO_SERVER)
        yield cells, instance


def _refuse(why: str, status: int) -> NoReturn:
    click.echo(why, err=True)
    sys.exit(status)


def _family(machine_type: str) -> str:
    """The machine type without its version: pc-q35-7.2 and q35 are of one family."""
    plain = _VERSION.sub("", machine_type)
    return _ALIASES.get(plain, plain)
