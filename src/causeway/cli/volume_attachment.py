"""``causeway manage volume-attachment show``, ``get-connector`` and ``refresh``: options and exit statuses are nova-manage's."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import click
from oslo_utils import strutils
from rich.markup import escape

from causeway import errors
from causeway.cli import databases, extras, processes, tables
from causeway.context import admin_context
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.operations import OperationBrief
from causeway.model.sagas import ENDED, SagaState
from causeway.model.states import VmState
from causeway.operations.attachment_refresh import request_refresh
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import journal
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database

NO_SERVER, NOT_ATTACHED = 2, 3
# Exit statuses of `refresh`.
NO_FILE, UNREADABLE_FILE, UNKNOWN_SERVER, WRONG_STATE, NOT_ITS_VOLUME, WRONG_HOST = 2, 3, 4, 5, 6, 7
# Seconds between two checks whether the operation has ended.
PAUSE = 0.5


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
    with processes.failures_reported(), ExitStack() as cleanup:
        _api, cells = databases.api_and_cells(processes.configuration(config_files), cleanup)
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
    """Show what block storage learns of this host when a volume is connected to it.

    Exit status: 0 it is shown, 1 it failed.
    """
    with processes.failures_reported():
        conf = processes.configuration(config_files)
        extras.require("libvirt", "A connector, with which volumes are connected to this host,")
        from causeway.virt.libvirt.storage.volumes import connector_of

        _print(connector_of(conf.host, conf.my_ip), as_json=as_json)


@volume_attachment.command()
@processes.config_file_option
@click.argument("instance_uuid")
@click.argument("volume_id")
@click.argument("connector_path", type=click.Path(path_type=Path))
def refresh(config_files: tuple[Path, ...], instance_uuid: str, volume_id: str, connector_path: Path) -> None:
    """Give a volume of a stopped server a new attachment, connected for the server's host.

    CONNECTOR_PATH is a file that `get-connector --json` wrote on that host. A conductor does the work, as an operation that
    other conductors can take over; this command waits for its end.

    Exit status: 0 done, 1 it failed, 2 there is no such file, 3 it can't be read, 4 there is no such server, 5 it is not stopped,
    locked, or something else is being done with it, 6 the volume is not attached to it, 7 the connector is another host's.
    """
    connector = _connector(connector_path)
    with processes.failures_reported(), ExitStack() as cleanup:
        conf = processes.configuration(config_files)
        api, cells = databases.api_and_cells(conf, cleanup)
        try:
            cell, database = cells.of_server(instance_uuid)
            instance = instances.get(database, instance_uuid, with_tags=False)
        except errors.ServerNotFound as missing:
            _refuse(missing.message, UNKNOWN_SERVER)
        _check(instance, block_devices.of_instance(database, instance_uuid), volume_id, connector)
        conductor = ConductorClient(processes.transports(conf, cleanup).get(conf.transport_url))
        context = admin_context(project_id=instance.project_id)
        try:
            request_refresh(
                Requests(conf, api, cells, conductor),
                context,
                instance,
                cell.uuid,
                volume_id=volume_id,
                connector=connector,
            )
        except errors.Conflict as refusal:
            _refuse(refusal.message, WRONG_STATE)
        ended = _end_of(api, instance_uuid, context.request_id, conf.long_rpc_timeout)
    if ended.state is not SagaState.DONE:
        why = (ended.error or {}).get("message", "")
        raise click.ClickException(f"The attachment was not refreshed; the volume stays reserved for the server. {why}")
    click.echo(f"Volume {volume_id} of server {instance_uuid} has a new attachment.")


def _connector(path: Path) -> dict[str, Any]:
    if not path.exists():
        _refuse(f"There is no file {path}.", NO_FILE)
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as failure:
        _refuse(f"File {path} can't be read: {failure}", UNREADABLE_FILE)
    if not isinstance(found, dict) or not isinstance(found.get("host"), str):
        _refuse(f"File {path} is not a connector: write it with `get-connector --json`.", UNREADABLE_FILE)
    return found


def _check(instance: Instance, present: list[BlockDevice], volume_id: str, connector: dict[str, Any]) -> None:
    uuid = instance.uuid
    if instance.vm_state is not VmState.STOPPED or instance.task_state is not None:
        task = f", and its task is {instance.task_state}" if instance.task_state is not None else ""
        _refuse(f"Server {uuid} is {instance.vm_state.value}{task}: it must be stopped.", WRONG_STATE)
    if instance.locked:
        _refuse(f"Server {uuid} is locked: unlock it first.", WRONG_STATE)
    if all(one.volume_id != volume_id for one in present):
        _refuse(f"Volume {volume_id} is not attached to server {uuid}.", NOT_ITS_VOLUME)
    if connector["host"] != instance.host:
        _refuse(f"The connector is of host {connector['host']}, and the server is on {instance.host}.", WRONG_HOST)


def _end_of(api: Database, instance_uuid: str, request_id: str, patience: float) -> OperationBrief:
    """The operation that a request began, when it has ended; raises OperationFailed after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while True:
        found = journal.of_requests(api, {instance_uuid: request_id})[request_id][-1]
        if found.state in ENDED:
            return found
        if time.monotonic() > deadline:
            raise errors.OperationFailed(
                f"The operation has not ended after {patience:g} seconds and continues: see"
                f" `causeway operation show {instance_uuid}`."
            )
        time.sleep(PAUSE)


def _refuse(why: str, status: int) -> NoReturn:
    click.echo(why, err=True)
    sys.exit(status)


def _print(shown: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(shown, indent=2, default=str))
        return
    rows = [
        [name, escape(json.dumps(value, default=str) if isinstance(value, dict) else str(value))]
        for name, value in shown.items()
    ]
    tables.show(tables.console(), ("Field", "Value"), rows, folded=("Value",))


def _shown(device: BlockDevice) -> dict[str, Any]:
    shown = dataclasses.asdict(device)
    if device.connection_info is not None:
        shown["connection_info"] = strutils.mask_dict_password(device.connection_info)
    return shown
