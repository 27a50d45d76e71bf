"""``causeway manage volume-attachment show`` and ``get-connector``: options and exit statuses are nova-manage's."""

from __future__ import annotations

import dataclasses
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from oslo_utils import strutils
from rich.console import Console
from rich.table import Table

from causeway import errors
from causeway.cli import processes
from causeway.model.block_device import BlockDevice
from causeway.store.cell import block_devices, instances

NO_SERVER, NOT_ATTACHED = 2, 3


@click.group("volume-attachment")
def volume_attachment() -> None:
    """What the records say of the volumes of servers."""


@volume_attachment.command()
@processes.config_file_option
@click.argument("instance_uuid")
@click.argument("volume_id")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def show(config_files: tuple[Path, ...], instance_uuid: str, volume_id: str, as_json: bool) -> None:
    """Show what a server's record says of a volume: its attachment, device and connection. Passwords are left out.

    Exit status: 0 it is shown, 1 it failed, 2 there is no such server, 3 the volume is not attached to it.
    """
    with processes.failures_told(), ExitStack() as cleanup:
        _api, cells = processes.databases(processes.configuration(config_files), cleanup)
        try:
            _cell, database = cells.of_server(instance_uuid)
            instances.get(database, instance_uuid, with_tags=False)
        except errors.ServerNotFound as missing:
            click.echo(missing.message, err=True)
            sys.exit(NO_SERVER)
        found = [one for one in block_devices.of_instance(database, instance_uuid) if one.volume_id == volume_id]
    if not found:
        click.echo(f"Volume {volume_id} is not attached to server {instance_uuid}.", err=True)
        sys.exit(NOT_ATTACHED)
    _print(_shown(found[0]), as_json=as_json)


@volume_attachment.command("get-connector")
@processes.config_file_option
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def get_connector(config_files: tuple[Path, ...], as_json: bool) -> None:
    """Show what block storage is told of this host when a volume is connected to it.

    Exit status: 0 it is shown, 1 it failed.
    """
    with processes.failures_told():
        conf = processes.configuration(config_files)
        try:
            from causeway.virt.libvirt.volumes import connector_of
        except ImportError as missing:
            raise errors.NotImplementedHere(
                f"This machine has no {missing.name}, which connects volumes: install causeway[libvirt]."
            ) from missing
        _print(connector_of(conf.host, conf.my_ip), as_json=as_json)


def _print(shown: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(shown, indent=2, default=str))
        return
    table = Table("Field", "Value")
    for name, value in shown.items():
        table.add_row(name, json.dumps(value, default=str) if isinstance(value, dict) else str(value))
    Console().print(table)


def _shown(device: BlockDevice) -> dict[str, Any]:
    shown = dataclasses.asdict(device)
    if device.connection_info is not None:
        shown["connection_info"] = strutils.mask_dict_password(device.connection_info)
    return shown
